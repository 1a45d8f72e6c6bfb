// Parts differ by hatching and by their place in the legend; colour comes on top.
const HATCHES = [
  [],
  [["path", { d: "M-1 7L7 -1M3 11L11 3M-5 3L3 -5" }]],
  [["circle", { cx: 2, cy: 2, r: 1.3 }], ["circle", { cx: 6, cy: 6, r: 1.3 }]],
  [["path", { d: "M0 4H8M4 0V8" }]],
  [["path", { d: "M0 2H8M0 6H8" }]],
];
let pictures = 0;

class BarsView {
  constructor(root) {
    this.hold = html("div", { class: "to-hold" });
    this.finding = html("p", { class: "to-finding" });
    this.title = html("p", { class: "to-name" });
    root.append(this.title, this.hold, this.finding);
  }

  update({ title, parts, arms, finding, ratio }) {
    this.title.replaceChildren(html("b", {}, title));
    this.finding.textContent = ratio;
    const id = `to-hatch-${Date.now()}-${pictures++}`;
    const fill = (part) => `url(#${id}-${part % HATCHES.length})`;
    const longest = Math.min(22, arms.reduce((most, { label }) => Math.max(most, label.length), 0));
    const left = Math.max(60, longest * (CHARACTER + 0.8) + 16);
    const right = WIDTH - 84;
    const height = arms.length * 34 + 34;
    const most = arms.reduce((high, { values }) => Math.max(high, values.reduce((a, b) => a + b, 0)), 0) || 1;
    const x = linear([0, most], [left, right]);
    const node = picture(height, title, finding);
    node.append(svg("defs", {}, ...HATCHES.map((shapes, index) => svg(
      "pattern",
      { id: `${id}-${index}`, width: 8, height: 8, patternUnits: "userSpaceOnUse", class: `to-hatch to-hatch-${index}` },
      svg("rect", { width: 8, height: 8, class: "to-hatch-ground" }),
      ...shapes.map(([tag, attributes]) => svg(tag, attributes)),
    ))));
    for (const value of ticks(0, most, 4)) {
      node.append(svg("path", { d: `M${x(value)} 4V${height - 28}`, class: "to-grid" }), text(x(value), height - 12, bytesText(value), { anchor: "middle" }));
    }
    arms.forEach(({ label, values, total }, row) => {
      const top = row * 34 + 8;
      const short = label.length > longest ? `${label.slice(0, longest - 1)}…` : label;
      const name = text(left - 8, top + 15, short, { anchor: "end", kind: "to-label" });
      if (short !== label) name.append(svg("title", {}, label));
      node.append(name);
      let sum = 0;
      values.forEach((value, part) => {
        if (value > 0) {
          const bar = svg("rect", { x: x(sum), y: top, width: Math.max(x(sum + value) - x(sum), 0.5), height: 22, fill: fill(part), class: "to-bar" });
          bar.append(svg("title", {}, `${parts[part]}: ${bytesText(value)}`));
          node.append(bar);
        }
        sum += value;
      });
      node.append(text(x(sum) + 6, top + 15, total, { kind: "to-label" }));
    });
    const legend = html("ul", { class: "to-legend", "aria-label": "Parts" });
    parts.forEach((part, index) => legend.append(html("li", {}, svg("svg", { width: 18, height: 14, "aria-hidden": "true" }, svg("rect", { width: 18, height: 14, fill: fill(index), class: "to-bar" })), ` ${part}`)));
    const focused = this.hold.contains(document.activeElement);
    this.hold.replaceChildren(node, legend);
    if (focused) node.focus({ preventScroll: true });
  }
}
