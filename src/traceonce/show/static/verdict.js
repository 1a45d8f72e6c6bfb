function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "to";
  const box = document.createElement("div");
  box.className = "to-box to-verdict";
  box.dataset.outcome = model.get("outcome");
  box.setAttribute("role", "status");
  const sentence = document.createElement("p");
  sentence.textContent = model.get("verdict");
  const note = document.createElement("p");
  note.className = "to-note";
  note.textContent = model.get("note");
  box.append(sentence, note);
  root.append(box);
  el.append(root);
}

export default { render };
