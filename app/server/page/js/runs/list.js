// The list of runs, of which two may be chosen to be compared.

import { get } from "../net/api.js";
import { make } from "../shell/dom.js";
import { warn } from "../shell/notice.js";
import { address, go } from "../shell/route.js";
import { number, say, timeAgo } from "../shell/words.js";
import { figure, metricName, whisker } from "./figures.js";

const PAGE = 20;

/** Make the list. */
export async function listView() {
  const chosen = new Set();
  const cards = make("ul.runs");
  const compare = make("button.primary", { type: "button", disabled: true, on: { click: () => { const [a, b] = chosen; go(["runs"], { a, b }); } } }, say("runs.compare"));
  const choose = (name, isChosen) => {
    if (isChosen) chosen.add(name);
    else chosen.delete(name);
    compare.disabled = chosen.size !== 2;
    for (const box of cards.querySelectorAll("input")) box.disabled = chosen.size === 2 && !box.checked;
  };
  const more = make("button", { type: "button", hidden: true, on: { click: () => grow().catch(warn) } }, say("list.more"));
  const grow = async () => {
    const page = await get(`/v1/runs?limit=${PAGE}&offset=${cards.childElementCount}`);
    cards.append(...page.data.map((run) => card(run, choose)));
    more.hidden = cards.childElementCount >= page.total;
    return page.total;
  };
  const total = await grow();
  if (!total) return [make("div.welcome", null, make("h2", null, say("runs.none")), make("p", null, say("runs.noneHint")))];
  return [make("div.sheet-head", null, make("h2", null, say("place.runs")), make("p.faint", null, say("runs.hint")), compare), cards, more];
}

function card(run, choose) {
  const box = make("input", { type: "checkbox", "aria-label": say("runs.choose", { name: run.name }), on: { change: () => choose(run.name, box.checked) } });
  const words = [say("queries", { n: run.questions }), run.failed && say("runs.failed", { n: run.failed }), run.missing && say("runs.missing", { n: run.missing }), timeAgo(run.started)];
  return make("li.card", null,
    make("div.card-head", null, box, make("a", { href: address(["runs", run.name]) }, run.name), make("span.faint", null, words.filter(Boolean).join(" · "))),
    make("p.faint", null, run.dataset),
    run.problem && make("p.alarm", null, run.problem),
    headline(run));
}

// EM, else the first metric, of each system.
function headline({ metrics, systems }) {
  const wanted = metrics.some((each) => each.metric === "em") ? "em" : metrics[0]?.metric;
  if (!wanted) return null;
  const rows = systems.map((system) => metrics.find((each) => each.system === system && each.metric === wanted)).filter(Boolean);
  const most = wanted === "em" || wanted === "f1" ? 1 : Math.max(...rows.map((each) => each.high ?? each.mean ?? 0));
  return make("dl.headline", null, ...rows.map((each) => make("div", null,
    make("dt", null, each.system), make("dd", null, make("small", null, metricName(wanted)), " ", make("strong", null, figure(each.mean, wanted)), whisker(each, { most }),
      make("small", null, say("runs.n", { n: number(each.n) }))))));
}
