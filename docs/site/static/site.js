// One switch for everything that is folded on a page. Without this script each answer still opens on its own.
const answers = () => [...document.querySelectorAll("details.hide.below-input")];

function setAll(open) {
  for (const answer of answers()) answer.open = open;
}

document.addEventListener("DOMContentLoaded", () => {
  const title = document.querySelector("article h1");
  if (!title || answers().length === 0) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "evidence-switch";
  const label = () => {
    button.textContent = answers().every((answer) => answer.open) ? "Fold all answers" : "Open all answers";
  };
  button.addEventListener("click", () => {
    setAll(!answers().every((answer) => answer.open));
    label();
  });
  for (const answer of answers()) answer.addEventListener("toggle", label);
  label();
  title.after(button);
});

// The theme's switches in the list of pages have a picture and no name.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll(".bd-sidebar-primary li.has-children > details > summary")) {
    summary.setAttribute("aria-label", `Pages below ${summary.closest("li").querySelector("a").textContent.trim()}`);
  }
});

// Paper has no folds.
window.addEventListener("beforeprint", () => setAll(true));
