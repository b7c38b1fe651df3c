// The passages that an answer rests on: chips below it, and a dialog with the text of one.

import { get, path } from "../net/api.js";
import { openDialog } from "../shell/dialog.js";
import { fill, make } from "../shell/dom.js";
import { number, say } from "../shell/words.js";
import { MARKS } from "../tree/model.js";
import { fileOf } from "../tree/card.js";

/** Make the list of an answer's sources; none without any. */
export function sourceList(sources, thread) {
  if (!sources.length) return null;
  const items = sources.map((source) => make("li", null, make(`button.source-chip.verdict-${markOf(source)}`,
    { type: "button", title: source.source, on: { click: () => openSource(source, thread) } },
    make("span.number", null, number(source.number)), make("span.name", null, fileOf(source.source) || say("source.unnamed")),
    typeof source.score === "number" && make("span.badge", { title: say(`verdict.${markOf(source)}`) }, MARKS[markOf(source)]))));
  return make("ul.sources", { "aria-label": say("source.sources") }, ...items);
}

function markOf(source) {
  return typeof source.score === "number" ? String(source.score) : "pending";
}

/** Make the reference [n] of an answer, which opens its source; null if there is none of this number. */
export function reference(sources, thread) {
  return (wanted) => {
    const source = sources.find((each) => each.number === wanted);
    if (!source) return null;
    const label = say("source.open", { number: wanted, source: fileOf(source.source) });
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
    make("p.source-head", null, make("strong", null, source.source)),
    typeof source.score === "number" && make(`p.verdict.verdict-${verdict}`, null, make("span.badge", null, MARKS[verdict]), " ", say(`verdict.${verdict}`)),
    reason && make("p.reason", null, reason),
    make("p.document", null, chunk.text),
  ];
}
