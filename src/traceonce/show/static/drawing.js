// What every chart needs: elements, scales, ticks, and labels that keep out of each other's way.
const WIDTH = 640;
const CHARACTER = 6.3; // of 11px text, on the wide side

function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function text(x, y, words, { anchor = "start", kind = "to-tick" } = {}) {
  return svg("text", { x, y, "text-anchor": anchor, class: kind }, words);
}

function linear([low, high], [from, to]) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

// Round steps: about `wanted` of them between low and high.
function ticks(low, high, wanted, whole = false) {
  const rough = (high - low || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  if (whole) step = Math.max(1, Math.round(step));
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n++) found.push(n * step);
  return found;
}

function secondsText(value) {
  if (value === 0) return "0 s";
  const units = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];
  const [unit, size] = units.find(([, size]) => value >= size * 0.9995) ?? units[3];
  return `${Number((value / size).toPrecision(3))} ${unit}`;
}

function bytesText(value) {
  const units = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];
  const found = units.find(([, size]) => Math.abs(value) >= size * 0.9995);
  return found ? `${Number((value / found[1]).toPrecision(3))} ${found[0]}` : `${Math.round(value)} B`;
}

// Boxes that are taken; `place` tries positions in turn and leaves a label out rather than over another.
class Room {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.taken = [];
  }

  take(left, top, right, bottom) {
    this.taken.push([left, top, right, bottom]);
  }

  free(left, top, right, bottom) {
    if (left < 0 || top < 0 || right > this.width || bottom > this.height) return false;
    return this.taken.every(([l, t, r, b]) => right <= l || left >= r || bottom <= t || top >= b);
  }

  place(words, candidates, kind = "to-label") {
    const wide = words.length * CHARACTER + 4;
    for (const [x, y, anchor] of candidates) {
      const left = anchor === "end" ? x - wide : anchor === "middle" ? x - wide / 2 : x;
      if (this.free(left, y - 11, left + wide, y + 4)) {
        this.take(left, y - 11, left + wide, y + 4);
        return text(x, y, words, { anchor, kind });
      }
    }
    return null;
  }
}

// One picture: focusable, named by its title, described by what it shows.
function picture(height, title, description) {
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${height}`, class: "to-picture", role: "img", tabindex: "0", "aria-label": `${title}. ${description}` },
    svg("desc", {}, description),
  );
}

// What the front end holds of an `Envelope`: buckets by index, replaced or added to by each message.
class Points {
  constructor() {
    this.width = 0;
    this.buckets = new Map();
  }

  merge({ width, whole, buckets }) {
    if (whole || width !== this.width) this.buckets.clear();
    this.width = width;
    for (const [index, ...points] of buckets) this.buckets.set(index, points);
  }

  all() {
    return [...this.buckets.keys()].sort((a, b) => a - b).flatMap((index) => this.buckets.get(index));
  }
}
