// The page of one tree: its picture, its search and its address, around the cards of tree.js.

const TREE = JSON.parse(document.getElementById("tree").textContent);
const MATCHES_OPENED = 60;

const entries = [];
let matches = [];
let current = -1;

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
  pattern = term ? patternOf(term) : null;
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
  // The picture names its boxes q0, q1, … and c0, c1, … in the order of `entries`; z0, z1, … fold chunks of q0, q1, …
  const named = new Map();
  for (const kind of ["query", "chunk"]) {
    entries.filter((entry) => entry.kind === kind).forEach((entry, number) => named.set(kind[0] + number, entry));
  }
  const picture = document.querySelector(".picture");
  picture?.addEventListener("click", (event) => {
    const entry = named.get(event.target.closest?.("g.node")?.id.replace(/^z/, "q"));
    if (entry) show(entry);
  });
  const goToRoot = () => document.getElementById("q0").scrollIntoView({ block: "center", inline: "center" });
  picture?.addEventListener("toggle", () => picture.open && picture.classList.contains("actual-size") && goToRoot());
  document.getElementById("zoom")?.addEventListener("click", () => {
    picture.classList.toggle("actual-size");
    goToRoot();
  });
}

const root = collect(TREE.root, "query", null, entries);
for (const entry of entries) entry.text = textOf(entry);
document.getElementById("nodes").append(make("ul", "", render(root)));
openLiving(entries);
fitPicture(document.querySelector(".picture"));
addVerdictBoxes();
listen();
document.getElementById("tools").hidden = false;
readAddress();
