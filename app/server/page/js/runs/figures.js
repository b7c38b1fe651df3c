// Figures of runs: means with their intervals, as words and as a small picture.

import { draw, make } from "../shell/dom.js";
import { hasWords, number, say } from "../shell/words.js";

const WIDTH = 120;
const HEIGHT = 16;

/** The name of a metric. */
export function metricName(metric) {
  return hasWords(`metric.${metric}`) ? say(`metric.${metric}`) : metric;
}

/** A value as the metric is written; "–" for none. */
export function figure(value, metric = "") {
  if (typeof value !== "number") return "–";
  if (metric === "cost_usd") return `$${number(value, 4)}`;
  if (metric === "em" || metric === "f1") return number(value, 3);
  return number(value, Math.abs(value) < 10 ? 2 : 1);
}

/** An interval on a line from least to most: a whisker with a dot; nothing without a mean. */
export function whisker({ mean, low, high }, { least = 0, most = 1, zero = null } = {}) {
  if (typeof mean !== "number") return null;
  const at = (value) => 4 + ((WIDTH - 8) * (Math.min(Math.max(value, least), most) - least)) / (most - least || 1);
  const parts = [draw("line", { x1: 4, x2: WIDTH - 4, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "axis" })];
  if (zero !== null) parts.push(draw("line", { x1: at(zero), x2: at(zero), y1: 1, y2: HEIGHT - 1, class: "zero" }));
  if (typeof low === "number" && typeof high === "number") {
    parts.push(draw("line", { x1: at(low), x2: at(high), y1: HEIGHT / 2, y2: HEIGHT / 2, class: "range" }));
  }
  parts.push(draw("circle", { cx: at(mean), cy: HEIGHT / 2, r: 3.6, class: "mean" }));
  return draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, class: "whisker", "aria-hidden": "true" }, ...parts);
}

/** A table of means: a row a system, a column a metric. */
export function meansTable(metrics) {
  const names = [...new Set(metrics.map((each) => each.metric))];
  const systems = [...new Set(metrics.map((each) => each.system))];
  const most = Object.fromEntries(names.map((name) => [name, name === "em" || name === "f1" ? 1 : Math.max(...metrics.filter((each) => each.metric === name).map((each) => each.high ?? each.mean ?? 0), 1e-9)]));
  const cell = (system, name) => {
    const found = metrics.find((each) => each.system === system && each.metric === name);
    if (!found) return make("td", null, "–");
    const interval = typeof found.low === "number" ? `${figure(found.low, name)} – ${figure(found.high, name)}` : "";
    return make("td.figure", null, make("strong", null, figure(found.mean, name)), " ", make("small", null, interval), whisker(found, { most: most[name] }));
  };
  return table([say("run.system"), ...names.map(metricName)], systems.map((system) => [make("th", { scope: "row" }, system), ...names.map((name) => cell(system, name))]), say("run.means"));
}

/** A table that scrolls by itself; cells are elements or texts. */
export function table(head, rows, label) {
  const line = (cells) => make("tr", null, ...cells.map((cell) => (cell instanceof Element && /^(td|th)$/i.test(cell.tagName) ? cell : make("td", null, cell))));
  return make("div.wide", { tabindex: "0", role: "group", "aria-label": label }, make("table", null,
    make("thead", null, make("tr", null, ...head.map((cell) => make("th", { scope: "col" }, cell)))), make("tbody", null, ...rows.map(line))));
}
