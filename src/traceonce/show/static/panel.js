function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "to";
  const update = () => { root.innerHTML = model.get("html"); };
  model.on("change:html", update);
  update();
  el.append(root);
  return () => model.off("change:html", update);
}

export default { render };
