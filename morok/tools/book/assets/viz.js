// A trace: firings in order, narrowed by stage, rule, node or words. Shown a page at a time, so that long traces stay quick.
"use strict";
(() => {
  const { strings, rows, total } = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("firings");
  const more = document.getElementById("more");
  const field = document.getElementById("search");
  const found = document.getElementById("found");
  const PAGE = 200;
  const chosen = { stage: null, rule: null, node: null };
  let hits = [];
  let shown = 0;

  function element(tag, text, parent) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  // The part in which two texts differ, between what they share at both ends.
  function marked(parent, tag, text, other) {
    const most = Math.min(text.length, other.length);
    let start = 0;
    while (start < most && text[start] === other[start]) start++;
    let end = 0;
    while (end < most - start && text[text.length - 1 - end] === other[other.length - 1 - end]) end++;
    const code = element("code", undefined, parent);
    code.append(text.slice(0, start));
    element(tag, text.slice(start, text.length - end), code);
    code.append(text.slice(text.length - end));
  }

  function graph(parent, tag, id, text, other) {
    const node = element("button", `#${id}`, parent);
    node.title = "what became of this node";
    node.addEventListener("click", () => choose("node", id));
    marked(parent, tag, text, other);
  }

  function firing(row) {
    const [stage, rule, before, beforeId, after, afterId, ms] = row;
    const last = shown > 0 ? hits[shown - 1][0] : -1;
    if (stage !== last) element("h2", strings[stage], list);
    const item = element("li", undefined, list);
    const head = element("div", undefined, item);
    head.className = "head";
    element("b", strings[rule], head);
    const time = element("span", `${ms} ms`, head);
    time.className = "quiet";
    const body = element("div", undefined, item);
    body.className = "graph";
    graph(body, "del", beforeId, strings[before], strings[after]);
    graph(body, "ins", afterId, strings[after], strings[before]);
    shown++;
  }

  function page() {
    for (const row of hits.slice(shown, shown + PAGE)) firing(row);
    more.hidden = shown >= hits.length;
  }

  // The nodes that lead to a node, and those that it leads to.
  function related(id) {
    const nodes = new Set([id]);
    for (const row of rows) if (nodes.has(row[3])) nodes.add(row[5]);
    for (const row of [...rows].reverse()) if (nodes.has(row[5])) nodes.add(row[3]);
    return nodes;
  }

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const nodes = chosen.node === null ? null : related(chosen.node);
    hits = rows.filter((row) => {
      if (chosen.stage !== null && strings[row[0]] !== chosen.stage) return false;
      if (chosen.rule !== null && strings[row[1]] !== chosen.rule) return false;
      if (nodes !== null && !nodes.has(row[3]) && !nodes.has(row[5])) return false;
      if (words.length === 0) return true;
      const text = `${strings[row[1]]} ${strings[row[2]]} ${strings[row[4]]}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    list.replaceChildren();
    shown = 0;
    page();
    const node = chosen.node === null ? "" : `, of node #${chosen.node}`;
    found.textContent = hits.length === rows.length ? "" : `${hits.length} of ${rows.length}${node}`;
    for (const link of document.querySelectorAll("nav a[data-kind]")) {
      link.classList.toggle("on", chosen[link.dataset.kind] === link.dataset.name);
    }
  }

  function choose(kind, name) {
    chosen[kind] = chosen[kind] === name ? null : name;
    show();
  }

  function menu(id, kind, counts) {
    const most = Math.max(...Object.values(counts), 1);
    for (const [name, count] of Object.entries(counts)) {
      const link = element("a", undefined, document.getElementById(id));
      link.href = "#top";
      link.className = "bar";
      link.dataset.kind = kind;
      link.dataset.name = name;
      link.style.setProperty("--share", `${(100 * count) / most}%`);
      element("span", name, link);
      const number = element("span", count, link);
      number.className = "quiet";
      link.addEventListener("click", () => choose(kind, name));
    }
  }

  menu("stages", "stage", total.stages);
  menu("rules", "rule", total.rules);
  field.addEventListener("input", show);
  more.addEventListener("click", page);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      field.value = "";
      chosen.stage = chosen.rule = chosen.node = null;
      show();
    }
  });
  show();
})();
