// One run: its figures, its report, and its questions, filtered by who had them right and who wrong.

import { get, getText, path } from "../net/api.js";
import { fill, icon, make } from "../shell/dom.js";
import { warn } from "../shell/notice.js";
import { address, settle } from "../shell/route.js";
import { key } from "../shell/settings.js";
import { say, timeAgo } from "../shell/words.js";
import { comparisonTable } from "./compare.js";
import { figure, meansTable, table } from "./figures.js";
import { answerName, rightness } from "./pair.js";

const PAGE = 50;

/** Make the view of a run. */
export async function runView(name, query) {
  const run = await get(path`/v1/runs/${name}`);
  const facts = [run.dataset, say("queries", { n: run.questions }), run.failed && say("runs.failed", { n: run.failed }), run.missing && say("runs.missing", { n: run.missing }), timeAgo(run.started)];
  const questions = make("section", null);
  fill(questions, ...(await questionList(run, query)));
  return [
    make("div.sheet-head", null, make("a.back", { href: address(["runs"]) }, icon("left"), say("place.runs")), make("h2", null, run.name), make("p.faint", null, facts.filter(Boolean).join(" · ")), reportButton(name)),
    run.problem && make("p.alarm", null, run.problem),
    make("section", null, make("h3", null, say("run.means")), meansTable(run.metrics)),
    comparisons(run.report.comparisons ?? []),
    failures(run.report.failures ?? []),
    questions,
    settings(run.identity),
  ].filter(Boolean);
}

function reportButton(name) {
  const where = path`/v1/runs/${name}/report`;
  if (!key()) return make("a.button", { href: where, target: "_blank", rel: "noopener" }, icon("file"), say("run.report"));
  // A new tab would send no key.
  return make("button", { type: "button", on: { click: () => saveReport(name, where).catch(warn) } }, icon("file"), say("run.saveReport"));
}

async function saveReport(name, where) {
  const url = URL.createObjectURL(new Blob([await getText(where, "text/html")], { type: "text/html" }));
  make("a", { href: url, download: `${name}.html` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function comparisons(found) {
  const shown = found.filter((each) => ["em", "f1"].includes(each.metric) && !each.split);
  if (!shown.length) return null;
  return make("section", null, make("h3", null, say("run.comparisons")), comparisonTable(shown));
}

function failures(found) {
  if (!found.length) return null;
  const head = Object.keys(found[0]);
  const rows = found.map((row) => head.map((name) => (typeof row[name] === "number" ? make("td.number", null, figure(row[name])) : String(row[name] ?? ""))));
  return make("details", null, make("summary", null, icon("right"), say("run.failures")), table(head, rows, say("run.failures")));
}

function settings(identity) {
  const rows = Object.entries(identity ?? {}).map(([name, value]) => [make("th", { scope: "row" }, name), typeof value === "string" ? value : JSON.stringify(value)]);
  return make("details", null, make("summary", null, icon("right"), say("run.settings")), table([say("run.setting"), say("run.value")], rows, say("run.settings")));
}

async function questionList(run, query) {
  const systems = run.systems;
  const wanted = { right: query.get("right") ?? "", wrong: query.get("wrong") ?? "" };
  const list = make("div.questions");
  const count = make("span.faint", { role: "status" });
  let found = [];
  const read = async (more = false) => {
    const asked = new URLSearchParams(Object.entries({ ...wanted, limit: PAGE, offset: more ? found.length : 0 }).filter(([, value]) => value !== ""));
    const page = await get(path`/v1/runs/${run.name}/questions` + `?${asked}`);
    found = more ? [...found, ...page.data] : page.data;
    count.textContent = say("run.found", { n: page.total });
    fill(list, ...found.map((question) => questionCard(run, question)),
      found.length < page.total && make("button", { type: "button", on: { click: () => read(true).catch(warn) } }, say("list.more")));
  };
  const choose = (changes) => {
    Object.assign(wanted, changes);
    settle(["runs", run.name], wanted);
    right.value = wanted.right;
    wrong.value = wanted.wrong;
    read().catch(warn);
  };
  const select = (name, label) => {
    const box = make("select", { on: { change: () => choose({ [name]: box.value }) } }, make("option", { value: "" }, say("run.any")),
      ...systems.map((system) => make("option", { value: system, selected: system === wanted[name] }, system)));
    return [box, make("label", null, make("span", null, label), box)];
  };
  const [right, rightLabel] = select("right", say("run.right"));
  const [wrong, wrongLabel] = select("wrong", say("run.wrong"));
  const quick = systems.includes("judge") && systems.includes("naive")
    ? make("button", { type: "button", on: { click: () => choose({ right: "judge", wrong: "naive" }) } }, say("run.quick")) : null;
  await read();
  return [make("h3", null, say("run.questions")), make("div.filters", null, rightLabel, wrongLabel, quick, count), list];
}

function questionCard(run, question) {
  const answers = question.answers.map((each) => make("tr", null,
    make("th", { scope: "row" }, answerName(each)),
    make("td", null, rightness(each)), make("td", null, each.answer || make("span.faint", null, each.error || say("tree.noAnswer")), each.failure && make("small", null, ` · ${each.failure}`))));
  const [a, b] = pairOf(question.answers);
  const trees = a && make("a.button", { href: address(["runs", run.name, "questions", question.id], { a: a.thread_id, b: b?.thread_id }) }, icon("tree"), say(b ? "run.bothTrees" : "run.tree"));
  return make("article.card", null,
    make("div.card-head", null, make("h4", null, question.question), trees),
    question.gold.length > 0 && make("p.faint", null, say("run.gold"), " ", question.gold.join(" · ")),
    make("div.wide", { tabindex: "0", role: "group", "aria-label": say("run.answers") }, make("table.answers", null, make("tbody", null, ...answers))));
}

// The answers whose trees tell most beside each other: of two systems, naive first.
function pairOf(answers) {
  const first = answers.filter((each) => each.repeat === 0 && each.thread_id);
  const judge = first.find((each) => each.system === "judge") ?? first.at(-1);
  return [first.find((each) => each !== judge) ?? judge, first.length > 1 ? judge : null];
}
