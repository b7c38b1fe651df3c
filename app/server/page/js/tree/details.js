// What the panel beside a tree says of one node: text, verdict, reason, probability, cost.

import { icon, iconButton, make } from "../shell/dom.js";
import { hasWords, number, say, seconds } from "../shell/words.js";
import { plain, rendered } from "../text/markdown.js";
import { marked, withMarks } from "../text/marked.js";
import { titleOf } from "../text/names.js";
import { answerOf, caveatWords, stateOf } from "./card.js";
import { noteOf } from "./layout.js";
import { MARKS, callsOf, costOf, verdictOf } from "./model.js";

/**
 * Make the panel of a node.
 * @param {import("./model.js").TreeNode} node
 * @param {{pattern?: RegExp|null, onClose: () => void}} options
 */
export function detailsOf(node, { pattern = null, onClose }) {
  const isQuery = node.kind === "query";
  const title = isQuery ? say(node.parent ? "tree.subQuestion" : "tree.question") : say("chunk.name");
  return make("div.details", { role: "group", "aria-label": title },
    make("div.details-head", null, make("h2", null, title), iconButton("close", say("close"), onClose)),
    make("div.details-body", { tabindex: "0" }, ...(isQuery ? queryDetails : chunkDetails)(node, pattern)));
}

function queryDetails({ data }, pattern) {
  const state = stateOf(data);
  return [
    make("p.big", null, ...marked(data.query, pattern)),
    make(`p.state.${state}`, null, say(`state.${state}`)),
    ...caveatWords(data.usage).map((said) => make("p.note", null, `! ${said}`)),
    section("tree.answer", markdown(answerOf(data), pattern)),
    rows([
      ["cost.cost", costWords(callsOf(data))],
      ["tree.depth", number(data.depth)],
      ["tree.suffices", data.set_suffices === null ? "" : say(data.set_suffices ? "yes" : "no")],
      ["tree.linkedFrom", data.linked_from],
      ["tree.thread", data.thread_id],
    ]),
    folded("tree.evidence", data.evidence && [make("p.document", null, data.evidence)]),
    folded("cost.calls", data.usage.length && [callTable(data.usage)], data.usage.length),
  ];
}

function chunkDetails({ data, query }, pattern) {
  const meta = data.metadata;
  const verdict = verdictOf(data);
  const note = noteOf(data);
  return [
    make(`p.verdict.verdict-${verdict}`, null, make("span.badge", null, MARKS[verdict]), " ", say(`verdict.${verdict}`)),
    meta.reason && make("p.reason", null, ...marked(plain(meta.reason), pattern)),
    note && make("p.note", null, hasWords(note) ? say(note, { error: meta.sub_run_error, title: meta.linked_by }) : meta.skipped),
    rows([
      ["chunk.probability", probabilityWords(meta)],
      ["chunk.confidence", numberWords(meta.score_confidence)],
      ["chunk.asks", meta.next_query],
      ["chunk.subAnswer", meta.sub_answer],
      ["chunk.shown", meta.shown_place ? say("chunk.passage", { number: meta.shown_place }) : ""],
      ["cost.cost", costWords(callsOf(query, data.chunk_id))],
      ["chunk.title", titleOf(meta)],
      ["chunk.source", meta.source],
      ["chunk.gold", data.gold && say(`gold.${data.gold}`)],
      ["chunk.rank", typeof meta.rank === "number" ? number(meta.rank + 1) : ""],
      ["chunk.score", numberWords(meta.retrieval_score, 4)],
    ]),
    section("chunk.text", markdown(data.text, pattern)),
    folded("chunk.metadata", [rows(Object.entries(meta).filter(([, value]) => value !== "" && value !== null), { plain: true })]),
    folded("cost.calls", callsOf(query, data.chunk_id).length && [callTable(callsOf(query, data.chunk_id))]),
  ];
}

function probabilityWords({ p_needed: needed, p_calibrated: calibrated }) {
  if (typeof needed !== "number") return "";
  return `${number(needed, 2)} (${say(calibrated ? "chunk.calibrated" : "chunk.uncalibrated")})`;
}

function numberWords(value, digits = 2) {
  return typeof value === "number" ? number(value, digits) : "";
}

/** Calls, tokens and seconds in words. */
export function costWords(calls) {
  const cost = costOf(calls);
  if (!cost.calls) return say("noCalls");
  return [say("calls", { n: cost.calls }), say("tokens", { n: cost.tokens }), seconds(cost.seconds)].join(" · ");
}

function markdown(text, pattern) {
  return make("div.document.rendered", null, ...withMarks(rendered(text), pattern));
}

function section(title, ...content) {
  return make("section", null, make("h3", null, say(title)), ...content);
}

function rows(given, { plain = false } = {}) {
  const list = make("dl");
  for (const [name, value] of given) {
    if (value === "" || value === null || value === undefined) continue;
    list.append(make("div", null, make("dt", null, plain ? name : say(name)), make("dd", null, String(value))));
  }
  return list.childElementCount ? list : null;
}

function folded(title, content, count = 0) {
  if (!content) return null;
  const words = count ? `${say(title)} (${number(count)})` : say(title);
  return make("details", null, make("summary", null, icon("right"), words), ...content);
}

function callTable(calls) {
  const head = ["cost.node", "cost.model", "cost.tokens", "cost.seconds"].map((key) => make("th", { scope: "col" }, say(key)));
  const line = (call) => make("tr", call.error ? { class: "alarm" } : null,
    make("td", null, call.node, call.cached ? ` · ${say("cost.cached")}` : ""), make("td", null, call.model),
    make("td.number", null, `${number(call.prompt_tokens)} + ${number(call.completion_tokens)}`), make("td.number", null, number(call.seconds, 2)));
  return make("div.wide", { tabindex: "0" }, make("table", null, make("thead", null, make("tr", null, ...head)), make("tbody", null, ...calls.map(line))));
}
