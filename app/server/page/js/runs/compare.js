// Systems of one run or of two, compared question by question, with intervals.

import { get } from "../net/api.js";
import { icon, make } from "../shell/dom.js";
import { address } from "../shell/route.js";
import { number, say } from "../shell/words.js";
import { figure, metricName, whisker } from "./figures.js";

/** Make the view of two runs. */
export async function compareView(a, b) {
  const head = make("div.sheet-head", null, make("a.back", { href: address(["runs"]) }, icon("left"), say("place.runs")),
    make("h2", null, say("compare.title", { a, b })), make("p.faint", null, say("compare.hint")));
  let found;
  let notes = null;
  try {
    found = await get(`/v1/runs/compare?${new URLSearchParams({ a, b })}`);
  } catch (error) {
    if (error.status !== 400 && error.status !== 409) throw error;
    // Runs that differ in data or models are compared only if that is wanted.
    found = await get(`/v1/runs/compare?${new URLSearchParams({ a, b, force: "true" })}`);
    notes = make("p.note-box", null, error.message);
  }
  return [head, notes, comparisonList(found.data)].filter(Boolean);
}

/** Make the list of comparisons: a sentence, the two means, the difference with its interval. */
export function comparisonList(found) {
  const bound = Math.max(...found.map((each) => Math.max(Math.abs(each.low ?? each.difference), Math.abs(each.high ?? each.difference))), 1e-6);
  return make("ul.comparisons", null, ...found.map((each) => make("li.card", { class: each.is_shown ? "card shown" : "card" },
    make("div.card-head", null, make("strong", null, metricName(each.metric)), make("span", null, `${each.a} ${figure(each.mean_a, each.metric)}`), make("span.faint", null, say("compare.against")), make("span", null, `${each.b} ${figure(each.mean_b, each.metric)}`)),
    make("div.difference", null, make("span", null, say("compare.difference"), " ", make("strong", null, signed(each.difference, each.metric))),
      whisker({ mean: each.difference, low: each.low, high: each.high }, { least: -bound, most: bound, zero: 0 }),
      make("small", null, typeof each.low === "number" ? `${signed(each.low, each.metric)} … ${signed(each.high, each.metric)}` : "", ` · ${probability(each.adjusted_p_value ?? each.p_value)} · ${say("queries", { n: each.n })}`)),
    each.verdict && make("p.faint", { lang: "en" }, each.verdict))));
}

function probability(p) {
  return p < 0.001 ? `p < ${number(0.001, 3)}` : `p = ${number(p, 3)}`;
}

function signed(value, metric) {
  return `${value > 0 ? "+" : ""}${figure(value, metric)}`;
}
