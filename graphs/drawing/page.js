"use strict";
// Text from documents and models reaches the page through text nodes only, never as markup.

const TREE = JSON.parse(document.getElementById("tree").textContent);
const QUERIES_OPEN_TO_DEPTH = 1;
const MATCHES_OPENED = 60;

// One entry a node, in the order in which the tree is drawn; `dom` stands once the entry was looked at.
const entries = [];
const painted = []; // [element, text] of everything that a search may highlight
let pattern = null;
let matches = [];
let current = -1;

function collect(data, kind, parent) {
  const entry = { data, kind, parent, children: [], dom: null, text: data.search.join("\n") };
  entries.push(entry);
  if (kind === "query") entry.children = data.chunks.map((chunk) => collect(chunk, "chunk", entry));
  else if (data.child) entry.children = [collect(data.child, "query", entry)];
  return entry;
}

function make(tag, className = "", ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

function words(tag, className, text) {
  const element = make(tag, className);
  painted.push([element, text]);
  paint(element, text);
  return element;
}

function paint(element, text) {
  if (!pattern) {
    element.textContent = text;
    return;
  }
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    parts.push(text.slice(from, found.index), make("mark", "", found[0]));
    from = found.index + found[0].length;
  }
  element.replaceChildren(...parts, text.slice(from));
}

function pairs(rows) {
  const list = make("dl");
  for (const [name, text] of rows) if (text) list.append(make("dt", "", name), words("dd", "", text));
  return list;
}

function table(head, rows) {
  const cell = (tag) => (value) => make(tag, typeof value === "number" ? "number" : "", String(value ?? ""));
  const result = make("table");
  if (head.length) result.append(make("tr", "", ...head.map(cell("th"))));
  result.append(...rows.map((row) => make("tr", "", ...row.map(cell("td")))));
  return result;
}

// A disclosure whose body is made when it is first opened.
function disclosure(className, summary, fill) {
  const details = make("details", className, make("summary", "", ...summary));
  const unfold = () => {
    if (details.childElementCount === 1) details.append(make("div", "body", ...fill()));
  };
  details.addEventListener("toggle", () => details.open && unfold());
  return { details, unfold };
}

function disclosureOf(title, fill, wanted) {
  return wanted ? disclosure("extra", [title], fill).details : null;
}

function queryCard(entry) {
  const node = entry.data;
  const summary = [make("span", "faint", node.kind)];
  if (node.status !== "finished") summary.push(make("span", "flag", node.status.toUpperCase()));
  const answered = node.status === "finished" && node.answer_status === "answered";
  const answer = words("span", answered ? "" : "alarm", `→ ${node.answer}`);
  summary.push(
    words("span", "title", node.query),
    make("span", "said", answer, " ", make("span", "faint", node.cost)),
  );
  const className = `query card ${node.status === "open" ? "open-thread" : node.status}`;
  return disclosure(className, summary, () => [
    disclosureOf("Evidence as the reader saw it", () => [words("pre", "", node.context)], node.context),
    disclosureOf(`Model calls: ${node.cost}`, () => [table(node.call_head, node.calls)], node.calls.length),
    disclosureOf("Thread", () => [table([], node.facts)], node.facts.length),
  ].filter(Boolean));
}

function chunkCard(entry) {
  const chunk = entry.data;
  const summary = [
    make("span", "badge", chunk.mark),
    make("span", "", chunk.words),
    words("span", "faint", chunk.origin),
    words("span", "", chunk.headline),
  ];
  if (chunk.sub_run_error) summary.push(words("span", "alarm", `sub-run: ${chunk.sub_run_error}`));
  return disclosure(`chunk card verdict-${chunk.label}`, summary, () => [
    words("pre", "", chunk.text),
    pairs(chunk.notes),
    disclosureOf("Metadata", () => [table([], chunk.metadata)], chunk.metadata.length),
  ].filter(Boolean));
}

// The list item of an entry: its card, and below it the list of its children, made when the card is first opened.
function render(entry) {
  if (entry.dom) return entry.dom;
  const card = (entry.kind === "query" ? queryCard : chunkCard)(entry);
  const item = make("li", "", card.details);
  entry.dom = item;
  entry.card = card.details;
  entry.list = null;
  entry.unfold = () => {
    if (!entry.list && entry.children.length) {
      entry.list = make("ul", "", ...entry.children.map(render));
      item.append(entry.list);
    }
    if (entry.list) entry.list.hidden = false;
  };
  if (entry.kind === "chunk") {
    entry.unfold(); // the sub-question under a chunk shows whether or not the chunk's own text is open
  } else {
    card.details.addEventListener("toggle", () => {
      if (card.details.open) entry.unfold();
      else if (entry.list) entry.list.hidden = true;
    });
  }
  return item;
}

// Make the entry's item, opening every query above it.
function reveal(entry) {
  if (entry.parent) {
    reveal(entry.parent);
    if (entry.parent.kind === "query") {
      entry.parent.unfold();
      entry.parent.card.open = true;
    }
  }
  return render(entry);
}

function show(entry) {
  reveal(entry);
  document.querySelector(".current")?.classList.remove("current");
  entry.card.open = true;
  entry.card.classList.add("current");
  entry.dom.scrollIntoView({ block: "center" });
}

function chosenVerdicts() {
  const boxes = [...document.querySelectorAll("#verdicts input")];
  const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
  return chosen.length === boxes.length ? null : new Set(chosen);
}

function filter() {
  const term = document.getElementById("term").value.trim();
  const verdicts = chosenVerdicts();
  pattern = term ? new RegExp(term.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "gi") : null;
  const fits = (entry) =>
    (!verdicts || (entry.kind === "chunk" && verdicts.has(entry.data.label))) &&
    (!pattern || entry.text.search(pattern) >= 0);
  matches = pattern || verdicts ? entries.filter(fits) : [];
  const shown = new Set();
  for (const entry of matches) for (let above = entry; above && !shown.has(above); above = above.parent) shown.add(above);
  for (const entry of matches) {
    reveal(entry);
    if (pattern && matches.length <= MATCHES_OPENED) entry.card.open = true;
  }
  const all = !pattern && !verdicts;
  for (const entry of entries) if (entry.dom) entry.dom.hidden = !all && !shown.has(entry);
  for (const [element, text] of painted) paint(element, text);
  current = -1;
  document.getElementById("count").textContent = all
    ? `${entries.length} nodes`
    : `${matches.length} of ${entries.length} nodes match`;
}

function nextMatch(step) {
  if (!matches.length) return;
  current = (current + step + matches.length) % matches.length;
  show(matches[current]);
  document.getElementById("count").textContent = `match ${current + 1} of ${matches.length}`;
}

function setAll(open) {
  for (const entry of entries) {
    if (open) reveal(entry);
    if (entry.dom && (entry.parent || open)) entry.card.open = open;
  }
}

// The page's address may carry a search: #search=river&verdict=1,unknown
function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  document.getElementById("term").value = asked.get("search") ?? "";
  const verdicts = asked.get("verdict")?.split(",");
  for (const box of document.querySelectorAll("#verdicts input")) {
    if (verdicts) box.checked = verdicts.includes(box.value);
  }
  filter();
}

function addVerdictBoxes() {
  const group = document.getElementById("verdicts");
  for (const { label, mark, words: meaning, count } of TREE.verdicts) {
    const box = Object.assign(document.createElement("input"), { type: "checkbox", value: label, checked: true });
    box.addEventListener("change", filter);
    const badge = make("span", `badge verdict-${label}`, mark);
    const line = make("label", "", box, " ", badge, ` ${count}`);
    line.title = meaning;
    box.ariaLabel = `${meaning} (${count})`;
    group.append(line);
  }
}

function listen() {
  let timer = 0;
  const term = document.getElementById("term");
  term.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(filter, 120);
  });
  document.getElementById("tools").addEventListener("submit", (event) => event.preventDefault());
  term.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== term) {
      event.preventDefault();
      term.focus();
    }
  });
  window.addEventListener("hashchange", readAddress);
  document.getElementById("open-all").addEventListener("click", () => setAll(true));
  document.getElementById("close-all").addEventListener("click", () => setAll(false));
  // The picture names its boxes q0, q1, … and c0, c1, … in the order of `entries`.
  const named = new Map();
  for (const kind of ["query", "chunk"]) {
    entries.filter((entry) => entry.kind === kind).forEach((entry, number) => named.set(kind[0] + number, entry));
  }
  const picture = document.querySelector(".picture");
  picture?.addEventListener("click", (event) => {
    const entry = named.get(event.target.closest?.("g.node")?.id);
    if (entry) show(entry);
  });
  document.getElementById("zoom")?.addEventListener("click", () => {
    picture.classList.toggle("actual-size");
    document.getElementById("q0").scrollIntoView({ block: "center" });
  });
}

const root = collect(TREE.root, "query", null);
document.getElementById("nodes").append(make("ul", "", render(root)));
for (const entry of entries) if (entry.kind === "query" && entry.data.depth <= QUERIES_OPEN_TO_DEPTH) {
  reveal(entry);
  entry.unfold();
  entry.card.open = true;
}
addVerdictBoxes();
listen();
document.getElementById("tools").hidden = false;
readAddress();
