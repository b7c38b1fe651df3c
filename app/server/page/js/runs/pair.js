// Both trees of a question beside each other, with the list of what differs.

import { get, path } from "../net/api.js";
import { fill, icon, make } from "../shell/dom.js";
import { address } from "../shell/route.js";
import { say } from "../shell/words.js";
import { badgeOf, fileOf } from "../tree/card.js";
import { TreePane } from "../tree/pane.js";
import { differences } from "./difference.js";

export class PairView {
  /** @param {{run: string, question: string, query: URLSearchParams}} options */
  constructor({ run, query }) {
    this.run = run;
    this.query = query;
    this.panes = ["a", "b"].filter((side) => query.get(side)).map((side) => [side, new TreePane({ label: `${say("tree.name")}: ${this.#system(side)}` })]);
    this.list = make("ol.differences");
    const named = ([side, pane]) => make("div.side", null, make("h3", null, this.#system(side)), pane.element);
    this.element = make("div.pair", null,
      make("div.sheet-head", null, make("a.back", { href: address(["runs", run]) }, icon("left"), run), make("h2", null, query.get("question") ?? "")),
      make("div.sides", null, ...this.panes.map(named)),
      make("details.parting", { open: true }, make("summary", null, icon("right"), say("pair.differences")), this.list));
  }

  #system(side) {
    return this.query.get(side === "a" ? "left" : "right") ?? "";
  }

  /** Read both trees. */
  async open() {
    const documents = await Promise.all(this.panes.map(([side]) => get(path`/v1/runs/${this.run}/trees/${this.query.get(side)}`)));
    this.panes.forEach(([, pane], at) => pane.show(documents[at]));
    const found = documents.length === 2 ? differences(...documents) : [];
    fill(this.list, ...(found.length ? found.map((each) => this.#item(each)) : [make("li.faint", null, say("pair.alike"))]));
  }

  /** Stop watching the window. */
  close() {
    for (const [, pane] of this.panes) pane.close();
  }

  #item(each) {
    const show = () => {
      [each.nodeA, each.nodeB].forEach((id, at) => id && this.panes[at]?.[1].open(id));
    };
    const isVerdict = each.kind === "verdict" || each.kind === "chunk";
    const sides = [each.a, each.b].map((text) => (isVerdict ? verdictWords(text) : make("span", null, text || "–")));
    return make("li", null, make("button.quiet.text", { type: "button", on: { click: show } },
      make("span", null, say(`pair.${each.kind}`), " ", make("strong", null, isVerdict ? fileOf(each.source) : "")), sides[0], make("span", { "aria-hidden": "true" }, "→"), sides[1]));
  }
}

function verdictWords(verdict) {
  return verdict ? make("span", { class: `verdict-${verdict}` }, badgeOf(verdict)) : make("span.faint", null, say("pair.notFound"));
}
