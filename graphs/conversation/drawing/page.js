// The page of a conversation: its picture, its turns by branch, and what a turn opens to; trees by tree.js and packs.js.

const part = (id) => JSON.parse(document.getElementById(id).textContent);
const control = (id) => document.getElementById(id);
const { branches: BRANCHES, turns: TURNS } = part("index");
const CHUNKS_OPENED = 30;

let packs = null; // read when a turn is first opened or searched through
let texts = null;
let ready = Promise.resolve(); // the newest work on packs, so that one waits for the other
let asked = 0; // searches so far, so that only the newest one shows

// The root of a turn's search tree, once unpacked; null where there is none.
async function rootOf(turn) {
  packs ??= part("trees");
  texts ??= await unpack(part("texts"));
  if (turn.root === undefined) {
    turn.root = packs[turn.place] && await unpack(packs[turn.place]);
    if (turn.root) fillIn(turn.root, texts);
  }
  return turn.root;
}

function jumpTo(place, text) {
  const link = make("a", "jump", text);
  link.href = `#turn=${encodeURIComponent(TURNS[place].id)}`;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    show(TURNS[place]);
  });
  return link;
}

function sourceItem(source) {
  const badge = make("span", `badge verdict-${source.label}`, source.mark);
  badge.title = source.words;
  const item = make("li", "", badge, words("span", "", source.source), make("span", "faint", source.score));
  if (source.finder !== null) item.append(jumpTo(source.finder, source.found_by));
  return item;
}

function treePart(turn, root) {
  if (!root) return [];
  const entries = [];
  const top = render(collect(root, "query", null, entries));
  openLiving(entries);
  for (const entry of entries) entry.text = textOf(entry);
  turn.entries = entries;
  openMatches(turn);
  return [make("div", "tree", make("ul", "", top))];
}

// Open the chunks and sub-questions of a shown tree that a search through trees has found.
function openMatches(turn) {
  if (!pattern || !control("deep").checked || !turn.entries) return;
  const found = turn.entries.filter((entry) => entry.text.search(pattern) >= 0);
  for (const entry of found.slice(0, CHUNKS_OPENED)) {
    reveal(entry);
    if (entry.kind === "chunk") entry.card.open = true;
  }
}

async function fill(turn, body) {
  body.append(pairs([["stands alone", turn.standalone], ["answer", turn.answer], ["summary so far", turn.summary]]));
  if (turn.sources.length) {
    body.append(make("h3", "", "Sources"), make("ul", "sources", ...turn.sources.map(sourceItem)));
  }
  body.append(disclosure("extra", ["Turn"], () => [table([], turn.facts)]).details);
  if (!turn.searched) return;
  const heading = make("h3", "", "Search tree");
  const note = make("p", "faint", turn.searched.replace("search tree: ", ""));
  body.append(heading, note);
  try {
    body.append(...treePart(turn, await rootOf(turn)));
  } catch (error) {
    note.textContent = `The search tree cannot be shown: ${error}`;
  }
}

function unfold(turn) {
  if (turn.card.childElementCount > 1) return;
  const body = make("div", "body");
  turn.card.append(body);
  ready = ready.then(() => fill(turn, body));
}

function cardOf(turn) {
  const summary = make("summary", "", make("span", "badge", turn.number), make("span", "faint", turn.basis));
  if (turn.status !== "answered") summary.append(make("span", "flag", turn.status.toUpperCase()));
  summary.append(words("span", "title", turn.query), make("span", "faint", turn.cost));
  if (turn.standalone) summary.append(words("span", "standalone faint", `= ${turn.standalone}`));
  if (turn.answer) summary.append(words("span", turn.status === "refused" ? "said alarm" : "said", `→ ${turn.answer}`));
  const kind = { open: " open-turn", refused: " refused", answered: "" }[turn.status];
  turn.card = make("details", `turn card from-${turn.from}${kind}`, summary);
  turn.card.addEventListener("toggle", () => turn.card.open && unfold(turn));
  turn.item = make("li", "", turn.card);
  return turn.item;
}

function branchPart(branch) {
  const heading = make("h2", "", branch.name, " ");
  if (branch.active) heading.append(make("span", "badge", "active"), " ");
  if (branch.fork !== null) heading.append(make("span", "faint", jumpTo(branch.fork, branch.origin)));
  else if (branch.origin) heading.append(make("span", "faint", branch.origin));
  const list = make("ul", "", ...branch.turns.map((place) => cardOf(TURNS[place])));
  branch.part = make("section", branch.active ? "branch active" : "branch", heading, list);
  if (!branch.turns.length) list.append(make("li", "faint", "no turn of its own"));
  return branch.part;
}

function show(turn) {
  turn.item.hidden = false;
  turn.item.closest(".branch").hidden = false;
  turn.card.open = true;
  document.querySelector(".current")?.classList.remove("current");
  turn.card.classList.add("current");
  turn.card.scrollIntoView({ block: "start" });
}

// All text of a turn's search tree, for a search through trees.
async function deepText(turn) {
  if (turn.deep === undefined) {
    const root = await rootOf(turn);
    const entries = [];
    if (root) collect(root, "query", null, entries);
    turn.deep = entries.map(textOf).join("\n");
  }
  return turn.deep;
}

async function fits(turn, from, deep) {
  if (from && turn.from !== from && turn.status !== from) return false;
  if (!pattern || turn.text.search(pattern) >= 0) return true;
  return deep && (await deepText(turn)).search(pattern) >= 0;
}

async function filter() {
  const [term, from, deep] = [control("search").value.trim(), control("from").value, control("deep").checked];
  const number = ++asked;
  pattern = term ? patternOf(term) : null;
  const found = [];
  for (const turn of TURNS) {
    const fit = await fits(turn, from, deep);
    if (number !== asked) return; // a newer search has begun
    if (fit) found.push(turn);
  }
  const shown = new Set(found);
  for (const turn of TURNS) turn.item.hidden = !shown.has(turn);
  for (const branch of BRANCHES) {
    branch.part.hidden = branch.turns.length ? !branch.turns.some((place) => shown.has(TURNS[place])) : Boolean(term || from);
  }
  for (const [element, text] of painted) paint(element, text);
  for (const turn of found) openMatches(turn);
  const all = TURNS.length;
  const turns = all === 1 ? "turn" : "turns";
  control("count").textContent = found.length === all ? `${all} ${turns}` : `${found.length} of ${all} ${turns}`;
}

function search() {
  ready = ready.then(filter, filter);
  return ready;
}

// The page's address may carry a search, and a turn to open: #search=river&deep=1&from=history&turn=ID
async function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  control("search").value = given.get("search") ?? "";
  control("deep").checked = given.has("deep");
  control("from").value = given.get("from") ?? "";
  if (control("from").selectedIndex < 0) control("from").value = "";
  await search();
  const opened = TURNS.find((turn) => turn.id === given.get("turn"));
  if (opened) show(opened);
}

function addChoices() {
  const kinds = new Map(TURNS.map((turn) => [turn.from, turn.mark]));
  if (TURNS.some((turn) => turn.status === "refused")) kinds.set("refused", "refused");
  const option = ([value, text]) => Object.assign(document.createElement("option"), { value, textContent: text });
  control("from").append(...[["", "in any way"], ...kinds].map(option));
}

function listen() {
  let timer = 0;
  control("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 150);
  });
  for (const id of ["deep", "from"]) control(id).addEventListener("change", search);
  control("tools").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) {
      event.preventDefault();
      control("search").focus();
    }
  });
  window.addEventListener("hashchange", readAddress);
  control("open-all").addEventListener("click", () => TURNS.forEach((turn) => (turn.card.open = !turn.item.hidden)));
  control("close-all").addEventListener("click", () => TURNS.forEach((turn) => (turn.card.open = false)));
  // The picture names its boxes t0, t1, … in the order of the turns.
  const picture = document.querySelector(".picture");
  picture?.addEventListener("click", (event) => {
    const name = event.target.closest?.("g.node")?.id ?? "";
    const turn = /^t\d+$/.test(name) ? TURNS[Number(name.slice(1))] : null;
    if (turn) show(turn);
  });
  control("zoom")?.addEventListener("click", () => picture.classList.toggle("actual-size"));
}

TURNS.forEach((turn, place) => {
  turn.place = place;
  const sources = turn.sources.map((source) => source.source);
  turn.text = [turn.query, turn.standalone, turn.answer, turn.summary, ...sources].join("\n");
});
control("branches").append(...BRANCHES.map(branchPart));
addChoices();
listen();
control("tools").hidden = false;
readAddress();
