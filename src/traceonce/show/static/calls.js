const MARKS = [
  { flags: 3, words: "traced and compiled", short: "traced, compiled", path: "M0 -7l7 7l-7 7l-7 -7z", solid: true },
  { flags: 1, words: "traced only", short: "traced", path: "M0 -7l7 12h-14z", solid: false },
  { flags: 2, words: "compiled only", short: "compiled", path: "M-5 -5h10v10h-10z", solid: true },
  { flags: 4, words: "raised an exception", short: "raised", path: "M-5 -5l10 10M5 -5l-10 10", solid: false },
];

function markOf(flags) {
  return flags & 4 ? MARKS[3] : MARKS.find((mark) => mark.flags === (flags & 3));
}

function markElement(mark, x, y) {
  return svg("path", { d: mark.path, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, class: mark.solid ? "to-mark" : "to-mark to-open" });
}

class CallsView {
  constructor(root) {
    this.root = root;
    this.panels = new Map();
    this.body = html("div");
    root.append(this.body, this.legend());
  }

  legend() {
    const entry = (shape, words) =>
      html("li", {}, svg("svg", { viewBox: "-9 -9 18 18", width: 16, height: 16, "aria-hidden": "true" }, shape), ` ${words}`);
    const dot = svg("path", { d: "M0 0h0", class: "to-dots" });
    return html("ul", { class: "to-legend", "aria-label": "Marks" }, entry(dot, "call"), ...MARKS.map((mark) => entry(markElement(mark, 0, 0), mark.words)));
  }

  update(state) {
    const wanted = new Map();
    for (const panel of state.panels) {
      const name = `${panel.label} ${panel.axis}`;
      const held = this.panels.get(name) ?? this.panel(panel);
      held.plain.merge(panel.plain);
      held.marked.merge(panel.marked);
      held.said = panel;
      wanted.set(name, held);
    }
    for (const [name, held] of this.panels) if (!wanted.has(name)) held.node.remove();
    this.panels = wanted;
    for (const held of wanted.values()) {
      if (!held.node.isConnected || held.node.parentNode !== this.body) this.body.append(held.node);
      this.draw(held);
    }
    if (!wanted.size && !this.body.childElementCount) this.body.append(html("p", { class: "to-empty" }, "No call yet."));
    if (wanted.size) this.body.querySelector(".to-empty")?.remove();
  }

  panel({ label }) {
    const counts = html("span", { class: "to-counts" });
    const share = html("span", { class: "to-share" });
    const hold = html("div", { class: "to-hold" });
    const node = html("div", { class: "to-panel" }, html("p", { class: "to-name" }, html("b", {}, `${label}: `), counts, " ", share), hold);
    return { node, counts, share, hold, plain: new Points(), marked: new Points(), said: null };
  }

  draw(held) {
    const { label, counts, share, axis } = held.said;
    held.counts.textContent = share ? `${counts}; ` : counts;
    held.share.textContent = share;
    const plain = held.plain.all();
    const marked = held.marked.all();
    const all = [...plain, ...marked];
    if (!all.length) {
      held.hold.replaceChildren();
      return;
    }
    const height = 184;
    // Above the highest mark there is room for its name.
    const [left, right, top, bottom] = [58, WIDTH - 14, 24, height - 34];
    const last = all.reduce((most, [n]) => Math.max(most, n), 1);
    const times = all.map(([, seconds]) => Math.max(seconds, 1e-9));
    const [shortest, longest] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))];
    const low = Math.floor(Math.log10(shortest) + 1e-9);
    const high = Math.max(low + 1, Math.ceil(Math.log10(longest) - 1e-9));
    const x = last === 1 ? () => (left + right) / 2 : linear([1, last], [left + 12, right - 12]);
    const log = linear([low, high], [bottom - 9, top + 7]);
    const y = (seconds) => log(Math.log10(Math.max(seconds, 1e-9)));
    const node = picture(height, `Time of each ${axis} of ${label}`, `${counts}. ${share}`);

    for (let power = low; power <= high; power++) {
      node.append(svg("path", { d: `M${left} ${log(power)}H${right}`, class: "to-grid" }));
      if (high - low <= 6 || (power - low) % 2 === 0) node.append(text(left - 6, log(power) + 4, secondsText(10 ** power), { anchor: "end" }));
    }
    const steps = ticks(1, last, 6, true);
    if (steps[0] !== 1 && x(steps[0] ?? last) - x(1) > 30) steps.unshift(1);
    for (const n of steps) {
      node.append(svg("path", { d: `M${x(n)} ${bottom}v4`, class: "to-axis" }), text(x(n), bottom + 16, n.toLocaleString("en"), { anchor: "middle" }));
    }
    node.append(
      svg("path", { d: `M${left} ${bottom}H${right}`, class: "to-axis" }),
      text((left + right) / 2, height - 4, axis === "call" ? "call number; upwards: time until the call returned, log scale" : "compile number; upwards: time to trace, lower and compile, log scale", { anchor: "middle" }),
    );
    // Each bucket of plain calls is a stroke from its lowest to its highest; a stroke of no length is a round dot.
    const strokes = [...held.plain.buckets.values()].map((points) => {
      const [a, b = a] = points;
      return `M${x(a[0]).toFixed(1)} ${y(a[1]).toFixed(1)}L${x(b[0]).toFixed(1)} ${y(b[1]).toFixed(1)}`;
    });
    node.append(svg("path", { d: strokes.join(""), class: "to-dots" }));

    const room = new Room(WIDTH, bottom);
    room.take(0, 0, left - 4, bottom); // the times of the axis
    const placed = marked.map(([n, seconds, flags]) => ({ n, flags, mark: markOf(flags), px: x(n), py: y(seconds) }));
    for (const { px, py } of placed) room.take(px - 6, py - 6, px + 6, py + 6);
    for (const { mark, px, py } of placed) node.append(markElement(mark, px, py));
    // The first of each kind says most. Where nearly every call is marked, more names would only be noise.
    const firsts = new Set(MARKS.map((mark) => placed.find((one) => one.mark === mark)).filter(Boolean));
    const order = placed.length > 12 ? [...firsts] : [...firsts, ...placed.filter((one) => !firsts.has(one))];
    for (const { n, mark, px, py } of order) {
      const words = `${axis} ${n}: ${mark.short}`;
      const beside = [[px + 10, py + 4, "start"], [px - 10, py + 4, "end"], [px, py - 11, "middle"], [px, py + 19, "middle"]];
      const corners = [[px - 6, py - 11, "start"], [px - 6, py + 19, "start"], [px + 6, py - 11, "end"], [px + 6, py + 19, "end"]];
      const further = [-24, 32, -40, 48].map((shift) => [px - 6, py + shift, "start"]);
      const label = room.place(words, [...beside, ...corners, ...further]);
      if (label) node.append(label);
    }
    swap(held.hold, node);
  }
}

// Put the new picture in the old one's place, and the keyboard's focus with it.
function swap(hold, node) {
  const focused = hold.contains(document.activeElement);
  hold.replaceChildren(node);
  if (focused) node.focus({ preventScroll: true });
}
