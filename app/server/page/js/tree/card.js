// The card of a node, as it stands in the picture of a tree.

import { fill, make } from "../shell/dom.js";
import { hasWords, number, say, seconds } from "../shell/words.js";
import { plain } from "../text/markdown.js";
import { marked } from "../text/marked.js";
import { fullNameOf, nameOf } from "../text/names.js";
import { noteOf } from "./layout.js";
import { MARKS, caveatsOf, costOf, verdictOf } from "./model.js";

/** The classes that colour a node. */
export function classOf(node) {
  if (node.kind === "query") return `query ${stateOf(node.data)}`;
  if (node.kind === "fold") return "fold verdict-0";
  return `chunk verdict-${verdictOf(node.data)}`;
}

/** How a query stands: "open", "failed", "refused" or "answered". */
export function stateOf(query) {
  if (query.status !== "finished") return query.status === "failed" ? "failed" : "open";
  return query.answer_status === "answered" ? "answered" : "refused";
}

/** Write what a card says into it. */
export function fillCard(card, node, pattern) {
  if (node.kind === "query") fill(card, ...queryWords(node, pattern));
  else if (node.kind === "chunk") fill(card, ...chunkWords(node, pattern));
  else fill(card, make("span.badge", { "aria-hidden": "true" }, "0"), make("span", null, say("tree.folded", { n: node.data.chunks.length })));
  if (node.hidden.length) {
    const sign = node.isClosed ? `+${node.hidden.length}` : "–";
    card.append(make("span.fold-sign", { "aria-hidden": "true", "data-fold": "" }, sign));
  }
}

function queryWords({ data, parent }, pattern) {
  const state = stateOf(data);
  const { calls, seconds: taken } = costOf(data.usage);
  const cost = calls ? [say("calls", { n: calls }), seconds(taken)].join(" · ") : say("noCalls");
  return [
    make("span.kind", null, say(parent ? "tree.subQuestion" : "tree.question"), data.linked_from ? ` · ${say("tree.linked")}` : "",
      make("span.cost", null, cost)),
    make("span.title", null, ...marked(data.query, pattern)),
    make("span.answer", null, state === "open" ? make("span.dots", null, say("tree.searching")) : make("span", null, "→ ", ...marked(plain(answerOf(data)), pattern))),
    caveatNote(data),
  ].filter(Boolean);
}

function caveatNote({ usage }) {
  const said = caveatWords(usage).join(" ");
  return said && make("span.note", { title: said }, `! ${said}`);
}

/** Why replies to calls are worse than they look, a sentence a kind. */
export function caveatWords(calls) {
  return caveatsOf(calls).map((kind) => hasWords(`caveat.${kind}`) ? say(`caveat.${kind}`) : kind);
}

/** The badge of a verdict, which is read out in words. */
export function badgeOf(verdict) {
  const words = say(`verdict.${verdict}`);
  return make("span", null, make("span.badge", { title: words, "aria-hidden": "true" }, MARKS[verdict]), make("span.unseen", null, `${words}: `));
}

/** The answer of a query, or why there is none. */
export function answerOf(query) {
  if (query.status === "failed") return say("tree.failed", { error: query.error });
  if (query.status === "open" && !query.answer) return say("tree.noAnswerYet");
  return query.answer || say("tree.noAnswer");
}

function chunkWords({ data }, pattern) {
  const { rank, retrieval_score: score, p_needed: needed } = data.metadata;
  const verdict = verdictOf(data);
  const note = noteOf(data);
  const probability = typeof needed === "number" ? `p ${number(needed, 2)}` : "";
  const place = typeof rank === "number" ? `#${rank + 1}` : "";
  return [
    make("span.kind", null, badgeOf(verdict),
      make("span.source", { title: fullNameOf(data.metadata) }, ...marked(nameOf(data.metadata), pattern)),
      data.gold && make("span.gold", { title: say(`gold.${data.gold}`) }, say("gold.mark")),
      make("span.cost", { title: typeof score === "number" ? number(score, 4) : "" }, [probability, place].filter(Boolean).join(" · "))),
    make("span.title", null, ...marked(headlineOf(data), pattern)),
    note && make("span.note", null, hasWords(note) ? say(note, { error: data.metadata.sub_run_error, title: data.metadata.linked_by }) : data.metadata.skipped),
  ].filter(Boolean);
}

function headlineOf(chunk) {
  return plain(chunk.metadata.reason || chunk.text);
}
