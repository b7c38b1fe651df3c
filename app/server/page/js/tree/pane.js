// The right half: the tree of a turn with its tools, its totals and the panel of the chosen node.

import { fill, iconButton, make } from "../shell/dom.js";
import { number, say, seconds } from "../shell/words.js";
import { patternOf } from "../text/marked.js";
import { badgeOf } from "./card.js";
import { detailsOf } from "./details.js";
import { VERDICTS, totalsOf } from "./model.js";
import { TreePicture } from "./tree.js";

const LEAST_ROOM_PX = 240; // for a card beside the panel

export class TreePane {
  /**
   * @param {{onNode?: (id: string) => void, label?: string}} [options]  What is called with the node that was opened,
   *   "" for none; the name of the pane where there are several.
   */
  constructor({ onNode = () => {}, label = say("tree.name") } = {}) {
    this.onNode = onNode;
    this.label = label;
    this.openId = "";
    this.wantedId = "";
    this.picture = new TreePicture({ onOpen: (node) => this.#open(node), onChange: () => this.#refresh() });
    this.#build();
  }

  #build() {
    this.term = make("input", { type: "search", placeholder: say("tree.search"), "aria-label": say("tree.search"), on: {
      input: () => this.#search(), keydown: (event) => event.key === "Enter" && this.#next(event.shiftKey ? -1 : 1) } });
    this.count = make("span.faint", { role: "status" });
    this.verdicts = make("div.verdicts", { role: "group", "aria-label": say("tree.filter") });
    this.totals = make("p.totals");
    this.shape = iconButton("list", say("tree.outline"), () => this.#reshape(), { "aria-pressed": "false" });
    this.folds = make("button.quiet.text", { type: "button", title: say("tree.foldHint"), on: { click: () => this.picture.fold(!this.picture.isFolding) } });
    const zoom = [
      iconButton("minus", say("tree.smaller"), () => this.picture.viewport.zoom(0.8)),
      iconButton("plus", say("tree.larger"), () => this.picture.viewport.zoom(1.25)),
      iconButton("fit", say("tree.fit"), () => this.picture.fit()),
    ];
    this.zoom = make("div.buttons", null, ...zoom);
    this.tools = make("div.tree-tools", { hidden: true },
      make("div.tree-find", null, this.term, this.count), this.verdicts, make("div.buttons", null, this.folds, this.shape, this.zoom));
    this.side = make("div.details-holder");
    this.hint = make("div.empty", null);
    this.body = make("div.tree-body", null, this.picture.element, this.hint, this.side);
    this.element = make("section.tree-pane", { "aria-label": this.label }, this.tools, this.totals, this.body);
    this.element.addEventListener("keydown", (event) => this.#pressed(event));
    this.explain(say("tree.empty"));
  }

  /** Stop watching the window. */
  close() {
    this.picture.close();
  }

  /** Say why there is no tree. */
  explain(text) {
    this.document = null;
    this.element.classList.remove("live");
    fill(this.hint, make("p", null, text));
    this.hint.hidden = false;
    this.tools.hidden = this.totals.hidden = this.picture.element.hidden = true;
    this.#close();
  }

  /** Show a tree, or the next state of one that grows. */
  show(document, { isLive = false } = {}) {
    this.document = document;
    this.hint.hidden = true;
    this.tools.hidden = this.totals.hidden = this.picture.element.hidden = false;
    this.element.classList.toggle("live", isLive);
    this.picture.show(document);
    if (this.wantedId) this.picture.reveal(this.wantedId);
    if (this.wantedId && this.picture.boxes.has(this.wantedId)) {
      const id = this.wantedId;
      this.wantedId = "";
      this.#open(this.picture.boxes.get(id).node, { focus: false });
    }
  }

  /** Open a node of the tree that is shown or comes next. */
  open(id) {
    this.wantedId = id;
    if (this.document) this.show(this.document);
  }

  #refresh() {
    if (!this.document) return;
    const { queries, chunks, counts, cost } = totalsOf(this.document);
    const most = Number(this.document.fingerprint.max_llm_calls);
    const calls = most ? say("callsOf", { calls: cost.calls, most }) : say("calls", { n: cost.calls });
    fill(this.totals, [say("queries", { n: queries }), say("chunks", { n: chunks }), calls, say("tokens", { n: cost.tokens }), seconds(cost.seconds)].join(" · "));
    this.#chips(counts);
    const isOutline = this.picture.isOutline;
    this.zoom.hidden = isOutline;
    this.shape.setAttribute("aria-pressed", String(isOutline));
    this.folds.textContent = say(this.picture.isFolding ? "tree.all" : "tree.fold");
    this.folds.hidden = !this.picture.canFold && !this.picture.isFolding;
    this.#count();
    if (this.openId) this.#show(this.picture.boxes.get(this.openId)?.node);
  }

  #chips(counts) {
    const chosen = this.picture.filter.verdicts;
    const shown = VERDICTS.filter((verdict) => counts[verdict] || chosen?.has(verdict));
    const said = JSON.stringify([counts, [...(chosen ?? [])]]);
    if (said === this.saidChips) return;
    this.saidChips = said;
    const focused = document.activeElement?.dataset?.verdict;
    fill(this.verdicts, ...shown.map((verdict) => make(`button.chip.verdict-${verdict}`, {
      type: "button", "data-verdict": verdict, "aria-pressed": String(Boolean(chosen?.has(verdict))), on: { click: () => this.#choose(verdict) },
    }, badgeOf(verdict), number(counts[verdict]))));
    if (focused) this.verdicts.querySelector(`[data-verdict="${focused}"]`)?.focus();
  }

  #choose(verdict) {
    const chosen = new Set(this.picture.filter.verdicts ?? []);
    if (!chosen.delete(verdict)) chosen.add(verdict);
    this.picture.search({ verdicts: chosen.size ? chosen : null });
  }

  #search() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      this.at = -1;
      this.picture.search({ term: this.term.value });
      const [first] = this.picture.matches();
      if (first) this.picture.bringIn(first.id);
    }, 120);
  }

  #next(step) {
    const found = this.picture.matches();
    if (!found.length) return;
    this.at = ((this.at ?? -1) + step + found.length) % found.length;
    this.picture.goTo(found[this.at].id, { focus: false });
    this.#count();
  }

  #count() {
    const { term, verdicts } = this.picture.filter;
    const found = this.picture.matches().length;
    this.count.textContent = !term.trim() && !verdicts ? "" : this.at >= 0 && found ? say("tree.match", { at: this.at + 1, found }) : say("tree.matches", { n: found });
  }

  #reshape() {
    this.picture.outline = !this.picture.isOutline;
    this.picture.viewport.isMoved = false;
    this.picture.update();
  }

  #open(node, { focus = true } = {}) {
    this.openId = node.id;
    this.shown = "";
    this.#show(node);
    this.picture.goTo(node.id, { focus });
    this.onNode(node.id);
  }

  #show(node) {
    if (!node) return;
    const said = JSON.stringify(node.data);
    if (this.shown === said) return;
    this.shown = said;
    fill(this.side, detailsOf(node, { pattern: patternOf(this.term.value), onClose: () => this.#close(true) }));
    this.element.classList.add("has-details");
    const room = this.body.clientWidth - this.side.clientWidth;
    this.picture.viewport.covered = room > LEAST_ROOM_PX ? this.side.clientWidth : 0;
  }

  #close(isByUser = false) {
    if (!this.side) return;
    this.openId = "";
    fill(this.side);
    this.element.classList.remove("has-details");
    this.picture.viewport.covered = 0;
    if (!isByUser) return;
    this.onNode("");
    this.picture.goTo(this.picture.current);
  }

  #pressed(event) {
    if (event.key === "Escape" && this.openId) {
      event.preventDefault();
      this.#close(true);
    } else if (event.key === "/" && !event.target.matches("input")) {
      event.preventDefault();
      this.term.focus();
    }
  }
}
