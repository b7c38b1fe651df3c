// The list of conversations beside the chat.

import { get, path, remove } from "../net/api.js";
import { confirmed } from "../shell/dialog.js";
import { fill, iconButton, make } from "../shell/dom.js";
import { warn } from "../shell/notice.js";
import { address, go } from "../shell/route.js";
import { say, timeAgo } from "../shell/words.js";

const PAGE = 50;
const calls = { areShown: false, hidden: 0 }; // as chosen and counted, also after another conversation was opened

export class ConversationList {
  /** @param {() => string} current  Name of the conversation that is shown. */
  constructor(current) {
    this.current = current;
    this.items = [];
    this.total = 0;
    this.list = make("ul.conversations");
    this.unnamed = make("input", { type: "checkbox", checked: calls.areShown, on: { change: () => this.#reload() } });
    this.calls = make("label.quiet", { hidden: true }, this.unnamed, " ", this.callsWords = make("span"));
    this.more = make("button.quiet.text", { type: "button", hidden: true, on: { click: () => this.#grow() } }, say("list.more"));
    this.element = make("nav.sidebar", { "aria-label": say("list.name"), id: "sidebar" },
      make("a.new-chat", { href: "#/" }, say("list.new")), this.list, this.more, this.calls);
  }

  /** Read the newest conversations again. */
  async load() {
    const wanted = Math.max(this.items.length, PAGE);
    const page = await get(this.#address(Math.min(wanted, 100), 0));
    this.items = page.data;
    this.total = page.total ?? page.data.length;
    if (!this.unnamed.checked) calls.hidden = page.hidden ?? 0;
    this.draw();
  }

  async #grow() {
    try {
      const page = await get(this.#address(PAGE, this.items.length));
      this.items = [...this.items, ...page.data];
      this.draw();
    } catch (error) {
      warn(error);
    }
  }

  async #reload() {
    calls.areShown = this.unnamed.checked;
    this.items = [];
    try {
      await this.load();
    } catch (error) {
      warn(error);
    }
  }

  #address(limit, offset) {
    return `/v1/conversations?limit=${limit}&offset=${offset}${this.unnamed.checked ? "&unnamed=true" : ""}`;
  }

  /** Write the list. */
  draw() {
    const items = this.items.map((item) => this.#item(item));
    fill(this.list, ...(items.length ? items : [make("li.faint", null, say("list.empty"))]));
    this.calls.hidden = !calls.hidden;
    fill(this.callsWords, say("list.calls", { n: calls.hidden }));
    this.more.hidden = this.items.length >= this.total;
  }

  #item(item) {
    const isCurrent = item.name === this.current();
    const words = [say("turns", { n: item.turns }), item.branches.length > 1 && say("branches", { n: item.branches.length }), timeAgo(item.updated_at)];
    return make("li", { class: isCurrent ? "current" : null },
      make("a", { href: address(["c", item.name]), "aria-current": isCurrent ? "page" : null },
        make("span.name", { dir: "auto", title: item.title || item.name }, item.title || item.name), make("span.faint", null, words.filter(Boolean).join(" · "))),
      iconButton("bin", say("list.delete", { title: item.title || item.name }), () => this.#remove(item)));
  }

  async #remove(item) {
    if (!(await confirmed(say("list.sure", { title: item.title || item.name }), say("delete")))) return;
    try {
      await remove(path`/v1/conversations/${item.name}`);
      if (item.name === this.current()) go([]);
      await this.load();
    } catch (error) {
      warn(error);
    }
  }
}
