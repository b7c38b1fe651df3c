// Systems of one run or of two, compared question by question, with intervals.

import { get } from "../net/api.js";
import { icon, make } from "../shell/dom.js";
import { address } from "../shell/route.js";
import { number, say } from "../shell/words.js";
import { figure, metricName, table, whisker } from "./figures.js";

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
  return [head, notes, comparisonTable(found.data)].filter(Boolean);
}

/** Make the table of comparisons: a row two systems by a metric, with the two means, the difference and its interval. */
export function comparisonTable(found) {
  const widest = (metric) => Math.max(...found.filter((each) => each.metric === metric).flatMap((each) => [each.difference, each.low, each.high]).map(Math.abs), 1e-6);
  const bounds = Object.fromEntries(found.map(({ metric }) => [metric, widest(metric)]));
  const side = (name, mean, metric) => make("td", null, name, " ", make("strong", null, figure(mean, metric)));
  const hasWords = found.some((each) => each.verdict); // those of two runs alone
  const rows = found.map((each) => [
    make("th", { scope: "row", class: each.is_shown ? "shown" : null }, metricName(each.metric)),
    side(each.a, each.mean_a, each.metric), side(each.b, each.mean_b, each.metric),
    make("td.figure", null, make("strong", null, signed(each.difference, each.metric)), " ",
      make("small", null, typeof each.low === "number" ? `${signed(each.low, each.metric)} … ${signed(each.high, each.metric)}` : ""),
      whisker({ mean: each.difference, low: each.low, high: each.high }, { least: -bounds[each.metric], most: bounds[each.metric], zero: 0 })),
    make("td.number", null, probability(each.adjusted_p_value ?? each.p_value)), make("td.number", null, number(each.n)),
    ...(hasWords ? [make("td.verdict-words", { lang: "en" }, each.verdict)] : [])]);
  const holder = table(["metric", "first", "second", "difference", "p", "n", ...(hasWords ? ["verdict"] : [])].map((name) => say(`compare.${name}`)), rows, say("run.comparisons"));
  holder.classList.add("comparisons");
  return holder;
}

function probability(p) {
  return p < 0.001 ? `< ${number(0.001, 3)}` : number(p, 3);
}

function signed(value, metric) {
  return `${value > 0 ? "+" : ""}${figure(value, metric)}`;
}
