// Two trees of a question beside each other, of any of its answers, with the right answer, the gold, and what differs.

import { get, path } from "../net/api.js";
import { fill, icon, make } from "../shell/dom.js";
import { address, go } from "../shell/route.js";
import { number, say } from "../shell/words.js";
import { badgeOf } from "../tree/card.js";
import { queriesOf } from "../tree/model.js";
import { TreePane } from "../tree/pane.js";
import { differences } from "./difference.js";

export class PairView {
  /** @param {{run: string, question: string, query: URLSearchParams}} options  `query` has the threads "a" and "b". */
  constructor({ run, question, query }) {
    this.run = run;
    this.id = question;
    this.threads = ["a", "b"].map((side) => query.get(side)).filter(Boolean);
    this.panes = [];
    this.element = make("div.pair", null, make("p.welcome", null, say("loading")));
  }

  /** Read the question and its trees. */
  async open() {
    const where = path`/v1/runs/${this.run}`;
    const [question, ...documents] = await Promise.all([
      get(where + path`/questions/${this.id}`), ...this.threads.map((thread) => get(where + path`/trees/${thread}`))]);
    const answers = question.answers.filter((each) => each.thread_id);
    this.panes = this.threads.map((thread) => new TreePane({ label: `${say("tree.name")}: ${answerName(answers.find((each) => each.thread_id === thread))}` }));
    const found = documents.length === 2 ? differences(...documents) : [];
    const list = make("ol.differences", null, ...(found.length ? found.map((each) => this.#item(each)) : [make("li.faint", null, say("pair.alike"))]));
    fill(this.element, this.#head(question), make("div.sides", null, ...this.panes.map((pane, at) => this.#side(pane, at, answers))),
      documents.length === 2 && make("details.parting", { open: true }, make("summary", null, icon("right"), say("pair.differences")), list));
    documents.forEach((document, at) => this.panes[at].show(withGold(document, question.marks)));
  }

  /** Stop watching the window. */
  close() {
    for (const pane of this.panes) pane.close();
  }

  #head({ question, gold }) {
    return make("div.sheet-head", null, make("a.back", { href: address(["runs", this.run]) }, icon("left"), this.run), make("h2", null, question),
      gold.length > 0 && make("p.gold-answer", null, say("run.gold"), " ", make("strong", null, gold.join(" · "))));
  }

  // Which answer's tree stands here, to be changed where there are others.
  #side(pane, at, answers) {
    const shown = this.threads[at];
    const choose = () => go(["runs", this.run, "questions", this.id], { a: this.threads[0], b: this.threads[1], ["ab"[at]]: box.value });
    const box = make("select", { "aria-label": say(at ? "pair.right" : "pair.left"), on: { change: choose } },
      ...answers.map((each) => make("option", { value: each.thread_id, selected: each.thread_id === shown }, answerName(each))));
    const answer = answers.find((each) => each.thread_id === shown);
    return make("div.side", null, make("div.side-head", null, box, answer && rightness(answer)), pane.element);
  }

  #item(each) {
    const show = () => {
      [each.nodeA, each.nodeB].forEach((id, at) => id && this.panes[at]?.open(id));
    };
    const isVerdict = each.kind === "verdict" || each.kind === "chunk";
    const sides = [each.a, each.b].map((text) => (isVerdict ? verdictWords(text) : make("span", null, text || "–")));
    return make("li", null, make("button.quiet.text", { type: "button", on: { click: show } },
      make("span", null, say(`pair.${each.kind}`), " ", make("strong", { dir: "auto" }, isVerdict ? each.name : "")), sides[0], make("span", { "aria-hidden": "true" }, "→"), sides[1]));
  }
}

/** The system of an answer, with its repeat. */
export function answerName(answer) {
  if (!answer) return "";
  return answer.repeat ? `${answer.system} (${number(answer.repeat + 1)})` : answer.system;
}

/** Whether an answer is right, in words. */
export function rightness({ em, f1, status }) {
  if (status === "failed") return make("span.mark-wrong", null, say("state.failed"));
  if (em === null) return make("span", null, "–");
  const words = em === 1 ? say("run.isRight") : say("run.isWrong");
  return make(em === 1 ? "span.mark-right" : "span.mark-wrong", null, words, f1 !== null && em !== 1 ? ` · F1 ${number(f1, 2)}` : "");
}

function withGold(document, marks) {
  for (const query of queriesOf(document.root)) for (const chunk of query.chunks) chunk.gold = marks[query.thread_id]?.[chunk.chunk_id];
  return document;
}

function verdictWords(verdict) {
  return verdict ? make("span", { class: `verdict-${verdict}` }, badgeOf(verdict)) : make("span.faint", null, say("pair.notFound"));
}
