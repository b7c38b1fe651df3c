// The list of conversations beside the chat.

import { get, path, remove } from "../net/api.js";
import { confirmed } from "../shell/dialog.js";
import { fill, iconButton, make } from "../shell/dom.js";
import { warn } from "../shell/notice.js";
import { address, go } from "../shell/route.js";
import { say, timeAgo } from "../shell/words.js";

const PAGE = 50;

export class ConversationList {
  /** @param {() => string} current  Name of the conversation that is shown. */
  constructor(current) {
    this.current = current;
    this.items = [];
    this.total = 0;
    this.list = make("ul.conversations");
    this.more = make("button.quiet.text", { type: "button", hidden: true, on: { click: () => this.#grow() } }, say("list.more"));
    this.element = make("nav.sidebar", { "aria-label": say("list.name"), id: "sidebar" },
      make("a.new-chat", { href: "#/" }, say("list.new")), this.list, this.more);
  }

  /** Read the newest conversations again. */
  async load() {
    const wanted = Math.max(this.items.length, PAGE);
    const page = await get(`/v1/conversations?limit=${Math.min(wanted, 100)}`);
    this.items = page.data;
    this.total = page.total ?? page.data.length;
    this.draw();
  }

  async #grow() {
    try {
      const page = await get(`/v1/conversations?limit=${PAGE}&offset=${this.items.length}`);
      this.items = [...this.items, ...page.data];
      this.draw();
    } catch (error) {
      warn(error);
    }
  }

  /** Write the list. */
  draw() {
    const items = this.items.map((item) => this.#item(item));
    fill(this.list, ...(items.length ? items : [make("li.faint", null, say("list.empty"))]));
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
