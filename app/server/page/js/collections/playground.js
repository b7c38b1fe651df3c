// The search playground: one query, and what embeddings, words and both together find, beside each other.

import { get, path } from "../net/api.js";
import { openDialog } from "../shell/dialog.js";
import { fill, make } from "../shell/dom.js";
import { number, say } from "../shell/words.js";
import { fullNameOf, nameOf } from "../text/names.js";
import { plain, rendered } from "../text/markdown.js";

const LISTS = ["dense", "sparse", "fused"];

export class Playground {
  /** @param {{name: string, query: string, onSearch: (query: string) => void}} options */
  constructor({ name, query, onSearch }) {
    this.name = name;
    this.onSearch = onSearch;
    this.term = make("input", { type: "search", value: query, placeholder: say("playground.query"), "aria-label": say("playground.query") });
    this.topk = make("input", { type: "number", min: 1, max: 100, value: 8 });
    this.alarm = make("p.alarm", { role: "alert", hidden: true });
    this.lists = make("div.hit-lists");
    const form = make("form.filters", { role: "search", on: { submit: (event) => { event.preventDefault(); this.open(); } } },
      make("label.grow", null, make("span", null, say("playground.query")), this.term), make("label.short", null, make("span", null, say("playground.topk")), this.topk),
      make("button.primary", { type: "submit" }, say("playground.search")));
    this.element = make("section.playground", null, make("h3", null, say("playground.title")), make("p.faint", null, say("playground.hint")), form, this.alarm, this.lists);
  }

  /** Search, if there is a query. */
  async open() {
    const query = this.term.value.trim();
    if (!query) return;
    this.onSearch(query);
    this.lists.setAttribute("aria-busy", "true");
    this.alarm.hidden = true;
    try {
      const asked = new URLSearchParams({ query, topk: this.topk.value || 8 });
      const found = await get(path`/v1/collections/${this.name}/search` + `?${asked}`);
      fill(this.lists, ...LISTS.map((list) => hitList(list, found)));
    } catch (error) {
      this.alarm.textContent = error.message;
      this.alarm.hidden = false;
    } finally {
      this.lists.removeAttribute("aria-busy");
    }
  }
}

function hitList(list, found) {
  const top = Math.max(...found[list].map((hit) => hit.score), 0);
  const hits = found[list].map((hit) => make("li", null, hitCard(list, hit, top, found)));
  return make("section.hit-list", null, make("h4", null, say(`playground.${list}`)), make("p.faint", null, say(`playground.${list}Hint`)),
    hits.length ? make("ol", null, ...hits) : make("p.faint", null, say("playground.nothing")));
}

function hitCard(list, hit, top, found) {
  const bar = make("span.bar-of", { "aria-hidden": "true" });
  bar.style.setProperty("--share", top > 0 ? Math.max(hit.score, 0) / top : 0);
  const ranks = LISTS.filter((other) => other !== list).map((other) => {
    const at = found[other].findIndex((each) => each.chunk_id === hit.chunk_id);
    return make(at < 0 ? "span.missing" : "span", null, say(`playground.${other}Short`), at < 0 ? " –" : ` #${at + 1}`);
  });
  return make("button.hit", { type: "button", on: { click: () => openDialog(fullNameOf(hit), [make("div.document.rendered", null, ...rendered(hit.text, undefined, { below: 2 }))], { className: "source" }) } },
    make("span.hit-head", null, make("strong", null, `#${number(hit.rank)}`), make("span.name", { title: fullNameOf(hit), dir: "auto" }, nameOf(hit)), make("span.score", null, number(hit.score, 4))),
    bar, make("span.excerpt", { dir: "auto" }, plain(hit.text).slice(0, 160)), make("span.ranks", null, ...ranks));
}
