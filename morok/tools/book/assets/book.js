// Search: every word must stand in a rule's card. `/` goes to the field, Escape empties it. The verdict buttons narrow further.
"use strict";
(() => {
  const field = document.getElementById("search");
  const found = document.getElementById("found");
  const cards = [...document.querySelectorAll("article, tr[id]")].map((node) => ({ node, text: node.textContent.toLowerCase() }));
  const holders = [...document.querySelectorAll("section, h1.file")];
  const buttons = [...document.querySelectorAll("button[data-only]")];
  let only = "";

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const narrowed = words.length > 0 || only !== "";
    let count = 0;
    for (const { node, text } of cards) {
      const fits = words.every((w) => text.includes(w)) && (!only || (node.dataset.verdict || "").split(" ").includes(only));
      node.hidden = !fits;
      count += fits ? 1 : 0;
    }
    for (const holder of holders) {
      holder.hidden = narrowed && (holder.matches("h1") || !holder.querySelector("article:not([hidden])"));
    }
    found.textContent = narrowed ? `${count} found` : "";
  }

  field.addEventListener("input", show);
  field.addEventListener("search", show);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      only = only === button.dataset.only ? "" : button.dataset.only;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other.dataset.only === only));
      show();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape") {
      field.value = "";
      show();
    }
  });
})();
