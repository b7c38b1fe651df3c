// The view "Runs": a list, one run, two compared, and the trees of one question beside each other.

import { make } from "../shell/dom.js";
import { say } from "../shell/words.js";
import { compareView } from "./compare.js";
import { listView } from "./list.js";
import { PairView } from "./pair.js";
import { runView } from "./run.js";

export class RunsView {
  /** @param {{parts: string[], query: URLSearchParams}} options */
  constructor({ parts, query }) {
    this.parts = parts;
    this.query = query;
    this.element = make("div.view", null, make("p.welcome", null, say("loading")));
    this.pair = null;
  }

  /** Read what is shown. */
  async open() {
    const [run, what, question] = this.parts;
    if (run && what === "questions" && question) {
      this.pair = new PairView({ run, question, query: this.query });
      this.element.replaceChildren(this.pair.element);
      await this.pair.open();
    } else this.element.replaceChildren(make("div.sheet", null, ...(await this.#content(run))));
  }

  #content(run) {
    if (run) return runView(run, this.query);
    if (this.query.get("a")) return compareView(this.query.get("a"), this.query.get("b") ?? "");
    return listView();
  }

  /** Leave the view. */
  close() {
    this.pair?.close();
  }
}
