// The page of a run: the list of its questions, what filters it, and what a question opens to; trees by tree.js and packs.js.

const part = (id) => JSON.parse(document.getElementById(id).textContent);
const { systems: SYSTEMS, kinds: KINDS, questions: QUESTIONS } = part("index");
const FILTERS = ["search", "type", "recursion", "system", "outcome", "right", "wrong"];
const OUTCOMES = {
  right: "right", wrong: "wrong", answered: "answered", refused: "refused", failed: "failed", degraded: "degraded",
};
const control = (name) => document.getElementById(name);

let trees = null; // packs by place of the question, and the texts that they refer to: read when a question is opened
let texts = null;
let ready = Promise.resolve(); // the newest opening, so that one waits for the other

async function treesOf(question) {
  trees ??= part("trees");
  texts ??= await unpack(part("texts"));
  const roots = await unpack(trees[question.place]);
  for (const root of roots) if (root) fillIn(root, texts);
  return roots;
}

const of = (question, system) => question.answers.filter((answer) => answer.system === system);

// A system that was asked several times is right on a question if it always was; null where nobody can tell.
function isRight(question, system) {
  const scores = of(question, system).map((answer) => answer.em);
  return !scores.length || scores.includes(null) ? null : scores.every((score) => score === 1);
}

function hasOutcome(answer, outcome) {
  if (outcome === "right") return answer.em === 1;
  if (outcome === "wrong") return answer.em !== null && answer.em < 1;
  return [answer.status, answer.completeness, answer.failure].includes(outcome);
}

function sign(answer) {
  if (answer.em === null) return ["", "·"];
  return answer.em === 1 ? ["right", "✓"] : ["wrong", "✗"];
}

const named = (answer) => (answer.repeat ? `${answer.system} (repeat ${answer.repeat})` : answer.system);
const said = (answer) => (answer.status === "answered" ? answer.prediction : answer.status);

function outcomeLine(answer) {
  const [className, mark] = sign(answer);
  const line = make("span", `outcome ${className}`, make("span", "sign", mark), ` ${named(answer)}: `);
  line.append(words("span", "said", said(answer).slice(0, 160)));
  return line;
}

function shown(number, digits = 0) {
  return number === null ? "" : number.toFixed(digits);
}

function answerRow(answer) {
  const [className, mark] = sign(answer);
  const outcome = make("td", className, make("span", "sign", mark), ` ${answer.status}`);
  const harm = answer.completeness === "degraded" ? "degraded: " : "";
  if (answer.damage) outcome.append(make("br", ""), words("span", "faint", `${harm}${answer.damage}`));
  if (answer.caveats) outcome.append(make("br", ""), words("span", "alarm", `! ${answer.caveats}`));
  const said = make("td", "", words("pre", "", answer.prediction || answer.error));
  const why = make("td", "kind");
  if (answer.failure) {
    why.append(KINDS[answer.failure][0]);
    why.title = KINDS[answer.failure][1];
  }
  const numbers = [
    shown(answer.em), shown(answer.f1, 2), shown(answer.cover_em), shown(answer.tree_recall, 2),
    shown(answer.calls), shown(answer.seconds, 1),
  ];
  const cells = numbers.map((text) => make("td", "number", text));
  return make("tr", "", make("td", "", named(answer)), outcome, said, why, ...cells);
}

function answerTable(answers) {
  const head = ["system", "", "prediction", "failure", "EM", "F1", "cover", "gold found", "calls", "seconds"];
  const table = make("table", "figures", make("tr", "", ...head.map((name) => make("th", "", name))));
  table.append(...answers.map(answerRow));
  return make("div", "wide", table);
}

function goldLine(question) {
  const line = make("p", "gold-answers", make("span", "faint", "gold "));
  if (question.gold.length) line.append(words("strong", "", question.gold.join(" | ")));
  else line.append(make("em", "", question.known ? "cannot be answered: a refusal is right" : "not known"));
  const facts = [question.id, question.type, question.hops && `${question.hops} hops`].filter(Boolean).join(" · ");
  return make("div", "", line, make("p", "faint", facts));
}

// What came before a turn in the data set, and how it was understood by itself.
function turnPart({ turn, answers }) {
  if (!turn) return [];
  const earlier = turn.history.map(([asked, answered]) => {
    const line = make("li", "", words("span", "", asked));
    if (answered) line.append(make("br", ""), words("span", "faint", answered));
    return line;
  });
  const parts = [];
  if (earlier.length) {
    const summary = make("summary", "", `${earlier.length} turn${earlier.length > 1 ? "s" : ""} before it in the data set`);
    const history = make("details", "history", summary, make("ol", "", ...earlier));
    history.open = true;
    parts.push(history);
  }
  const rows = answers.filter((answer) => answer.standalone).map((answer) => {
    const source = make("td", "", answer.source === "search" ? "anew" : `from ${(answer.source ?? "").replace("_", " ")}`);
    return make("tr", "", make("td", "", named(answer)), words("td", "", answer.standalone), source);
  });
  if (turn.rewrite) rows.unshift(make("tr", "", make("td", "", "a human"), words("td", "", turn.rewrite), make("td", "")));
  if (!rows.length) return parts;
  const head = ["by", "the question alone", "answered"].map((name) => make("th", "", name));
  return [...parts, make("div", "wide", make("table", "figures", make("tr", "", ...head), ...rows))];
}

function treeOf(answer, root) {
  const heading = make("h3", "", `${named(answer)}: search tree`);
  if (!root) {
    const searched = !answer.source || answer.source === "search";
    return [heading, make("p", "faint", searched ? "No tree was kept." : "Nothing was searched for.")];
  }
  const entries = [];
  const top = render(collect(root, "query", null, entries));
  openLiving(entries);
  return [heading, make("div", "tree", make("ul", "", top))];
}

async function fill(question, body) {
  body.append(goldLine(question), ...turnPart(question), answerTable(question.answers));
  const waiting = make("p", "faint", "unpacking the search trees …");
  body.append(waiting);
  try {
    const roots = await treesOf(question);
    body.append(...question.answers.flatMap((answer, place) => treeOf(answer, roots[place])));
    waiting.remove();
  } catch (error) {
    waiting.textContent = `The search trees cannot be shown: ${error}`;
  }
}

function item(question) {
  const outcomes = make("span", "outcomes", ...question.answers.map(outcomeLine));
  const asked = words("span", "asked", question.question);
  const place = question.turn && make("span", "place", `${question.turn.dialogue} · ${question.turn.number}`);
  const summary = make("summary", "", place ? make("span", "", place, asked) : asked, outcomes);
  const details = make("details", "question", summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const body = make("div", "body");
    details.append(body);
    ready = ready.then(() => fill(question, body));
  });
  return details;
}

function wanted() {
  return Object.fromEntries(FILTERS.map((name) => [name, control(name).value.trim()]));
}

function fits(question, filter) {
  if (filter.type && question.type !== filter.type) return false;
  if (filter.recursion && question.fired !== (filter.recursion === "yes")) return false;
  if (filter.right && isRight(question, filter.right) !== true) return false;
  if (filter.wrong && isRight(question, filter.wrong) !== false) return false;
  if (filter.outcome) {
    const answers = filter.system ? of(question, filter.system) : question.answers;
    if (!answers.some((answer) => hasOutcome(answer, filter.outcome))) return false;
  } else if (filter.system && !of(question, filter.system).length) return false;
  return !pattern || question.text.search(pattern) >= 0;
}

function filterList() {
  const filter = wanted();
  pattern = filter.search ? patternOf(filter.search) : null;
  let count = 0;
  for (const question of QUESTIONS) {
    const fit = fits(question, filter);
    question.item.hidden = !fit;
    count += fit;
  }
  for (const [element, text] of painted) paint(element, text);
  const all = QUESTIONS.length;
  control("count").textContent = count === all ? `${all} questions` : `${count} of ${all} questions`;
}

// The page's address may carry a search: #right=judge&wrong=naive&search=river, and a question to open: &open=ID
function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (![...asked.keys()].some((name) => FILTERS.includes(name) || name === "open")) return;
  for (const name of FILTERS) {
    control(name).value = asked.get(name) ?? "";
    if (control(name).value !== (asked.get(name) ?? "")) control(name).value = "";
  }
  filterList();
  const opened = QUESTIONS.find((question) => question.id === asked.get("open"));
  if (opened) opened.item.open = true;
  (opened?.item ?? control("questions")).scrollIntoView();
}

function writeAddress() {
  const filter = Object.entries(wanted()).filter(([, value]) => value);
  history.replaceState(null, "", `#${new URLSearchParams(filter)}`);
  filterList();
}

function options(name, choices) {
  const option = ([value, text]) => Object.assign(document.createElement("option"), { value, textContent: text });
  control(name).replaceChildren(...[["", "any"], ...choices].map(option));
}

function addChoices() {
  const types = [...new Set(QUESTIONS.map((question) => question.type))].filter(Boolean).sort();
  options("type", types.map((type) => [type, type]));
  for (const name of ["system", "right", "wrong"]) options(name, SYSTEMS.map((system) => [system, system]));
  const found = new Set(QUESTIONS.flatMap((question) => question.answers.map((answer) => answer.failure)));
  const kinds = Object.entries(KINDS).filter(([kind]) => found.has(kind)).map(([kind, [title]]) => [kind, title]);
  options("outcome", [...Object.entries(OUTCOMES), ...kinds]);
}

function listen() {
  let timer = 0;
  for (const name of FILTERS.slice(1)) control(name).addEventListener("change", writeAddress);
  control("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(writeAddress, 150);
  });
  control("clear").addEventListener("click", () => {
    for (const name of FILTERS) control(name).value = "";
    writeAddress();
  });
  control("tools").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) {
      event.preventDefault();
      control("search").focus();
    }
  });
  window.addEventListener("hashchange", readAddress);
}

QUESTIONS.forEach((question, place) => {
  question.place = place;
  const alone = question.answers.map((answer) => answer.standalone);
  question.text = [question.id, question.question, ...question.gold, ...question.answers.map(said), ...alone].join("\n");
  question.item = item(question);
});
control("list").append(...QUESTIONS.map((question) => question.item));
addChoices();
listen();
control("tools").hidden = false;
filterList();
readAddress();
