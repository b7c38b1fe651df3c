"use strict";
// A search tree as cards that open: what every page that shows trees has in common.
// Text from documents and models reaches the page through text nodes only, never as markup.

const painted = []; // [element, text] of everything that a search may highlight
let pattern = null;
const threads = new Map(); // entries of queries by their threads, whose answers chunks may share

// One entry a node, in the order in which the tree is drawn; `dom` stands once the entry was looked at.
// Without recursion, since a tree may be deeper than a browser's stack.
function collect(data, kind, parent, entries) {
  const top = { data, kind, parent, children: [], dom: null };
  const waiting = [top];
  while (waiting.length) {
    const entry = waiting.pop();
    entries.push(entry);
    if (entry.kind === "query") threads.set(entry.data.thread, entry);
    const [below, inner] = entry.kind === "query" ? [entry.data.chunks, "chunk"] : [entry.data.sub_runs, "query"];
    entry.children = below.map((each) => ({ data: each, kind: inner, parent: entry, children: [], dom: null }));
    for (const child of [...entry.children].reverse()) waiting.push(child);
  }
  return top;
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

// What model calls were sent and what came, a disclosure a call; nothing where it was not recorded.
function saidIn(said, title) {
  const call = ({ title, texts }) => disclosureOf(title, () => texts.map(([name, text]) =>
    make("section", "", make("p", "faint", name), make("pre", "", text))), true);
  if (said.length === 1) return call({ ...said[0], title: `${title} (${said[0].title})` });
  return disclosureOf(`${title} (${said.length} calls)`, () => said.map(call), said.length);
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
    ...(node.caveats ?? []).map((line) => words("span", "said alarm", line)),
  );
  const className = `query card ${node.status === "open" ? "open-thread" : node.status}${node.leads ? " leads" : ""}`;
  return disclosure(className, summary, () => [
    disclosureOf("Evidence as the reader saw it", () => [words("pre", "", node.evidence)], node.evidence),
    disclosureOf(`Model calls: ${node.cost}`, () => [table(node.call_head, node.calls)], node.calls.length),
    saidIn(node.said, "Sent and received"),
    disclosureOf("Thread", () => [table([], node.facts)], node.facts.length),
  ].filter(Boolean));
}

// "fact": the chunk holds a supporting fact; "document": only its document is known to be gold.
function goldBadge(mark) {
  if (mark === "fact") return make("span", "badge gold", "gold");
  return make("span", "badge gold document", "gold document");
}

// Shows the query whose answer a chunk shares.
function linkTo(entry) {
  const link = make("button", "", "asked already: show the question");
  link.type = "button";
  link.addEventListener("click", (event) => {
    event.preventDefault(); // the button is in the summary of a card, which would open
    reveal(entry);
    entry.card.open = true;
    entry.dom.scrollIntoView({ block: "center" });
  });
  return link;
}

function chunkCard(entry) {
  const chunk = entry.data;
  const summary = [
    make("span", "badge", chunk.mark),
    make("span", "", chunk.words),
    words("span", "faint", chunk.origin),
    words("span", "", chunk.headline),
  ];
  if (chunk.gold) summary.splice(1, 0, goldBadge(chunk.gold));
  if (chunk.sub_run_error) summary.push(words("span", "alarm", `sub-run: ${chunk.sub_run_error}`));
  if (threads.has(chunk.shared)) summary.push(linkTo(threads.get(chunk.shared)));
  return disclosure(`chunk card verdict-${chunk.label}${chunk.leads ? " leads" : ""}`, summary, () => [
    words("pre", "", chunk.text),
    pairs(chunk.notes),
    saidIn(chunk.said, "What the judge was sent and replied"),
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

// Open all questions but those that led nowhere.
function openLiving(entries) {
  for (const entry of entries) if (entry.kind === "query" && !entry.data.dead) {
    reveal(entry);
    entry.unfold();
    entry.card.open = true;
  }
}

// Close the picture at the top if its smallest words, of 8.5 units, would have less than 9 px: the cards say the same. It
// then opens in its actual size.
function fitPicture(picture) {
  const svg = picture?.querySelector("svg");
  if (!svg || 8.5 * svg.getScreenCTM().a >= 9) return;
  picture.classList.add("actual-size");
  picture.open = false;
}

// All that a search looks through in an entry.
function textOf({ kind, data }) {
  if (kind === "query") return [data.query, data.answer, data.evidence].join("\n");
  return [data.text, ...[...data.notes, ...data.metadata].map(([, value]) => value)].join("\n");
}

// What finds a text literally, in capitals or not.
function patternOf(term) {
  return new RegExp(term.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "gi");
}
