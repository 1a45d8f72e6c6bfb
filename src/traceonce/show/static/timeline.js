const DASHES = ["", "7 4", "2 4", "10 3 2 3"];

class TimelineView {
  constructor(root) {
    this.lines = new Map();
    this.hold = html("div", { class: "to-hold" });
    this.finding = html("p", { class: "to-finding" });
    this.title = html("p", { class: "to-name" });
    root.append(this.title, this.hold, this.finding);
  }

  update(state) {
    for (const line of state.lines) {
      const held = this.lines.get(line.label) ?? new Points();
      held.merge(line.points);
      this.lines.set(line.label, held);
    }
    this.title.replaceChildren(html("b", {}, state.title));
    this.finding.textContent = state.finding;
    this.draw(state);
  }

  draw({ title, lines, limit, ending, finding }) {
    const height = 240;
    const [left, right, top, bottom] = [64, WIDTH - 120, 16, height - 36];
    const drawn = lines.map(({ label, last }) => ({ label, last, points: this.lines.get(label).all() })).filter(({ points }) => points.length);
    const node = picture(height, title, finding);
    if (!drawn.length) {
      this.hold.replaceChildren(html("p", { class: "to-empty" }, "No sample yet."));
      return;
    }
    const all = drawn.flatMap(({ points }) => points);
    const until = Math.max(all.reduce((most, [t]) => Math.max(most, t), 0), 1e-3);
    const from = all.reduce((least, [t]) => Math.min(least, t), 0);
    const most = all.reduce((high, [, value]) => Math.max(high, value), limit ? limit.value : 0) * 1.06 || 1;
    const x = linear([from, until], [left, right]);
    const y = linear([0, most], [bottom, top]);
    for (const value of ticks(0, most, 5)) {
      node.append(svg("path", { d: `M${left} ${y(value)}H${right}`, class: "to-grid" }), text(left - 6, y(value) + 4, bytesText(value), { anchor: "end" }));
    }
    for (const seconds of ticks(from, until, 6)) {
      node.append(svg("path", { d: `M${x(seconds)} ${bottom}v4`, class: "to-axis" }), text(x(seconds), bottom + 16, String(Number(seconds.toPrecision(4))), { anchor: "middle" }));
    }
    node.append(svg("path", { d: `M${left} ${bottom}H${right}`, class: "to-axis" }), text((left + right) / 2, height - 4, "seconds", { anchor: "middle" }));
    const room = new Room(WIDTH, height);
    if (limit) {
      node.append(svg("path", { d: `M${left} ${y(limit.value)}H${right}`, class: "to-limit" }));
      const label = room.place(`${limit.label} ${bytesText(limit.value)}`, [[right + 8, y(limit.value) + 4, "start"], [left + 6, y(limit.value) - 5, "start"], [left + 6, y(limit.value) + 15, "start"]]);
      if (label) node.append(label);
    }
    drawn.forEach(({ label, last, points }, index) => {
      const d = points.map(([t, value], n) => `${n ? "L" : "M"}${x(t).toFixed(1)} ${y(value).toFixed(1)}`).join("");
      node.append(svg("path", { d, class: `to-line to-line-${index % 4}`, "stroke-dasharray": DASHES[index % 4] }));
      const [px, py] = [x(last[0]), y(last[1])];
      node.append(ending ? markElement(MARKS[3], px, py) : svg("circle", { cx: px, cy: py, r: 3, class: `to-end to-line-${index % 4}` }));
      // The name stands at the line's end, moved up or down past the names that are there already.
      const places = [0, 15, -15, 30, -30, 45, -45, 60].map((shift) => [right + 8, py + 4 + shift, "start"]);
      const name = room.place(label, places);
      if (name) node.append(name);
    });
    if (ending) {
      const { last } = drawn[0];
      const [px, py] = [x(last[0]), y(last[1])];
      const words = room.place(ending, [[px - 10, py - 8, "end"], [px - 10, py + 20, "end"], [px + 8, py + 20, "start"], [left + 6, top + 12, "start"]]);
      if (words) node.append(words);
    }
    swap(this.hold, node);
  }
}
