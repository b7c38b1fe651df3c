// The passages that an answer rests on: below it by document, those that it cites marked, and a dialog with the text of one.

import { get, path } from "../net/api.js";
import { openDialog } from "../shell/dialog.js";
import { fill, make } from "../shell/dom.js";
import { number, say } from "../shell/words.js";
import { rendered } from "../text/markdown.js";
import { fullNameOf, nameOf, namedWithFile } from "../text/names.js";
import { MARKS } from "../tree/model.js";

const MOST_SHOWN = 8; // documents; of more, those that the answer cites are shown, and the others on demand

/** Make the list of an answer's sources, a document a line; null without any. `cited` are the numbers in the answer. */
export function sourceList(sources, thread, cited = new Set()) {
  if (!sources.length) return null;
  const documents = new Map();
  for (const source of sources) {
    const of = fullNameOf(source);
    documents.set(of, [...(documents.get(of) ?? []), source]);
  }
  const item = ([name, passages]) => make("li", null,
    make("span.source-name", { title: name }, ...(name ? namedWithFile(passages[0]) : [say("source.unnamed")])),
    ...passages.map((source) => chip(source, thread, cited.has(source.number))));
  const isCited = ([, passages]) => passages.some((source) => cited.has(source.number));
  const all = [...documents];
  const shown = all.length > MOST_SHOWN ? all.filter((each, place) => (cited.size ? isCited(each) : place < MOST_SHOWN)) : all;
  const others = all.filter((each) => !shown.includes(each));
  return make("div.sources-box", null,
    make("ul.sources", { "aria-label": say("source.sources") }, ...shown.map(item)),
    others.length > 0 && make("details.quiet", null, make("summary", null, say("source.others", { n: others.length })), make("ul.sources", null, ...others.map(item))));
}

function chip(source, thread, isCited) {
  const mark = markOf(source);
  const words = [mark !== "pending" && say(`source.as.${mark}`), isCited && say("source.cited")].filter(Boolean);
  return make(`button.source-chip.verdict-${mark}${isCited ? ".cited" : ""}`,
    { type: "button", title: say("source.open", { number: source.number, source: fullNameOf(source) }), on: { click: () => openSource(source, thread) } },
    make("span.number", null, number(source.number)), words.length > 0 && make("span", null, words.join(" · ")));
}

function markOf(source) {
  return typeof source.score === "number" ? String(source.score) : "pending";
}

/** Make the reference [n] of an answer, which opens its source, and note its number; null if there is none of this number. */
export function reference(sources, thread, cited = new Set()) {
  return (wanted) => {
    const source = sources.find((each) => each.number === wanted);
    if (!source) return null;
    cited.add(wanted);
    const label = say("source.open", { number: wanted, source: nameOf(source) });
    return make("button.reference", { type: "button", "aria-label": label, title: label, on: { click: () => openSource(source, thread) } }, number(wanted));
  };
}

/** Show the text of a source. */
export async function openSource(source, thread) {
  const body = make("div", null, make("p.faint", null, say("loading")));
  openDialog(say("source.title", { number: source.number }), [body], { className: "source" });
  try {
    const chunk = source.text ? source : await readChunk(source, thread);
    fill(body, ...chunkView(source, chunk));
  } catch (error) {
    fill(body, make("p.alarm", { role: "alert" }, error.message));
  }
}

function readChunk(source, thread) {
  return get(path`/v1/trees/${source.thread_id || thread}/chunks/${source.chunk_id}?format=json`);
}

function chunkView(source, chunk) {
  const verdict = markOf(source);
  const reason = chunk.reason ?? chunk.metadata?.reason;
  return [
    make("p.source-head", null, ...namedWithFile(source)),
    typeof source.score === "number" && make(`p.verdict.verdict-${verdict}`, null, make("span.badge", null, MARKS[verdict]), " ", say(`verdict.${verdict}`)),
    reason && make("p.reason", null, reason),
    make("div.document.rendered", null, ...rendered(chunk.text, undefined, { below: 2 })),
  ];
}
