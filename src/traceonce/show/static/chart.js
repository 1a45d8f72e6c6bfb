const VIEWS = { calls: CallsView, timeline: TimelineView, bars: BarsView };

function table(columns, rows) {
  const head = html("tr", {}, ...columns.map((name, n) => html("th", { scope: "col", ...(n ? { class: "to-number" } : {}) }, name)));
  const body = rows.map(([first, ...rest]) => html("tr", {}, html("th", { scope: "row" }, first), ...rest.map((cell) => html("td", { class: "to-number" }, cell))));
  return html("table", {}, html("thead", {}, head), html("tbody", {}, ...body));
}

function render({ model, el }) {
  const first = model.get("state");
  const root = html("section", { class: "to to-chart", "aria-label": first.title });
  const drawing = html("div");
  const said = html("p", { class: "to-hidden", role: "status" });
  const hold = html("div");
  const details = html("details", {}, html("summary", {}, "The numbers as a table"), hold);
  root.append(drawing, details, said);
  el.append(root);
  const view = new VIEWS[first.kind](drawing);

  let latest = null;
  let waiting = [];
  let frame = 0;
  function draw() {
    frame = 0;
    const documents = waiting;
    waiting = [];
    for (const news of documents) view.update(news);
    if (details.open) hold.replaceChildren(table(latest.columns, latest.rows));
    root.dataset.finding = latest.finding;
    root.dataset.done = String(Boolean(latest.done));
    // A screen reader hears the finding once, at the end, and not ten times a second.
    if (latest.done && said.textContent !== latest.finding) said.textContent = latest.finding;
  }
  function take(news) {
    latest = news;
    waiting.push(news);
    // Hidden pages get no animation frames: what waits there must stay bounded.
    if (!frame) frame = window.document.hidden ? setTimeout(draw, 0) : requestAnimationFrame(draw);
  }
  const onState = () => take(model.get("state"));
  details.addEventListener("toggle", () => hold.replaceChildren(...(details.open ? [table(latest.columns, latest.rows)] : [])));
  model.on("change:state", onState);
  model.on("msg:custom", take);
  onState();
  return () => {
    model.off("change:state", onState);
    model.off("msg:custom", take);
  };
}

export default { render };
