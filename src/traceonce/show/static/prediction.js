let views = 0;
const CHOOSING = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", " "]);

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function render({ model, el }) {
  const group = `traceonce-prediction-${Date.now()}-${views++}`;
  const root = element("div", "to");
  const box = element("fieldset", "to-box");
  box.append(element("legend", "", model.get("title")));
  const question = element("p", "to-question", model.get("question"));
  question.id = `${group}-question`;
  box.setAttribute("aria-describedby", question.id);
  const code = element("pre", "to-code", model.get("code"));
  code.tabIndex = 0; // a long line is reached by keyboard
  code.setAttribute("role", "group");
  code.setAttribute("aria-label", `Code of ${model.get("key")}`);
  const status = element("p", "to-status");
  status.setAttribute("role", "status");
  const note = element("p", "to-note");
  const rows = model.get("choices").map((choice) => {
    const label = element("label", "to-choice");
    const input = element("input");
    input.type = "radio";
    input.name = group;
    input.value = choice;
    // JupyterLab's notebook takes these for moving between cells unless the event stops here. All other keys are the
    // notebook's: Shift+Enter runs the cell, Escape leaves the choices.
    input.addEventListener("keydown", (event) => {
      if (CHOOSING.has(event.key)) event.stopPropagation();
    });
    input.addEventListener("change", () => {
      model.set("answer", choice);
      model.save_changes();
    });
    const tag = element("span", "to-tag");
    label.append(input, element("span", "", choice), tag);
    return { choice, label, input, tag };
  });
  box.append(question, ...(model.get("code") ? [code] : []), ...rows.map((row) => row.label), status, note);
  root.append(box);
  el.append(root);

  function update() {
    const answer = model.get("answer");
    const measured = model.get("measured");
    for (const { choice, input, tag } of rows) {
      input.checked = choice === answer;
      input.disabled = measured !== null || model.get("locked");
      const said = [];
      if (measured !== null && choice === answer) said.push("your answer");
      if (choice === measured) said.push("measured");
      tag.textContent = said.length ? `(${said.join(", ")})` : "";
    }
    const recorded = answer === null ? "" : `Your answer: ${answer}. ${model.get("next")}`.trim();
    status.textContent = model.get("verdict") || recorded;
    note.textContent = model.get("note");
  }
  const stop = ["answer", "measured", "verdict", "note", "locked"].map((name) => {
    model.on(`change:${name}`, update);
    return () => model.off(`change:${name}`, update);
  });
  update();
  return () => stop.forEach((off) => off());
}

export default { render };
