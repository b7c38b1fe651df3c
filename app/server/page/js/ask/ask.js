// The view "Ask": conversations, the chat, and the tree of the turn that is looked at.

import { fill, icon, iconButton, make } from "../shell/dom.js";
import { confirmed } from "../shell/dialog.js";
import { offer, warn } from "../shell/notice.js";
import { go, settle } from "../shell/route.js";
import { say } from "../shell/words.js";
import { followTree, readTree } from "../tree/live.js";
import { seedOf } from "../tree/model.js";
import { TreePane } from "../tree/pane.js";
import { BranchMenu } from "./branches.js";
import { Composer } from "./composer.js";
import { Conversation, NO_PARENT, newName } from "./conversation.js";
import { ConversationList } from "./list.js";
import { Picker } from "./picker.js";
import { LiveTurnView, openTurn, savedTurn } from "./turn.js";
import { Welcome } from "./welcome.js";

const kept = new Map(); // conversations whose questions may still run, by name

export class AskView {
  /** @param {{server: {models: string[], policies: string[], judging: string[], limits: Record<string, number|null>}, name: string, query: URLSearchParams}} options */
  constructor({ server, name, query }) {
    this.conversation = kept.get(name) ?? new Conversation(name || newName());
    this.isNew = !name;
    this.shownTurn = query.get("turn") ?? "";
    this.list = new ConversationList(() => (this.isNew ? "" : this.conversation.name));
    this.pane = new TreePane({ onNode: (id) => this.#settle({ node: id }) });
    this.wantedNode = query.get("node") ?? "";
    this.picker = new Picker({ ...server, onChange: () => this.welcome.draw() });
    this.welcome = new Welcome({ picker: this.picker, onExample: (question) => this.composer.begin(question) });
    this.composer = new Composer({ picker: this.picker, onAsk: (question, place) => this.#ask(question, place), onStop: () => this.#stop() });
    this.branches = new BranchMenu(this.conversation);
    this.watching = null;
    this.#build();
    this.listener = (event) => this.#changed(event.detail);
    this.conversation.addEventListener("changed", this.listener);
    this.leaving = () => this.conversation.removeHidden().catch(() => {}); // nobody sees what went wrong
    window.addEventListener("pagehide", this.leaving);
  }

  #build() {
    this.title = make("h2.chat-title");
    this.log = make("div.log", { role: "log", "aria-label": say("ask.log"), tabindex: "0" });
    const side = (name) => make("button", { type: "button", "aria-pressed": String(name === "chat"), "data-side": name, on: { click: () => this.#turnTo(name) } },
      icon(name === "chat" ? "list" : "tree"), say(`ask.${name}`));
    this.sides = make("div.sides-switch", { role: "group", "aria-label": say("ask.sides") }, side("chat"), side("tree"));
    const menu = iconButton("menu", say("list.name"), () => this.element.classList.toggle("with-list"), { className: "quiet list-button" });
    const chat = make("section.chat", { "aria-label": say("ask.chat") },
      make("header.chat-head", null, menu, this.title, this.branches.element), this.log, this.composer.element);
    const shade = make("div.shade", { on: { click: () => this.element.classList.remove("with-list") } });
    this.element = make("div.ask", { "data-side": "chat" }, this.list.element, shade, this.sides, chat, this.pane.element);
  }

  /** Read what is shown. */
  async open() {
    this.#draw();
    this.composer.focusFirst();
    const reading = [this.list.load()];
    if (!this.isNew && !this.conversation.isRunning) reading.push(this.conversation.load().then(() => this.#followCollection()));
    await Promise.all(reading.map((each) => each.catch(warn)));
    await this.#join();
  }

  // Watch a question that the server is answering already; returns whether there was one.
  async #join() {
    const { conversation } = this;
    kept.set(conversation.name, conversation);
    const hasJoined = await conversation.join().catch(warn);
    kept.delete(conversation.name);
    if (hasJoined) await this.list.load().catch(warn);
    return hasJoined;
  }

  // What is asked next belongs to the collection that the conversation has searched, unless another one is chosen.
  #followCollection() {
    const { document } = this.conversation;
    if (document) this.picker.follow(document.open_turn?.collection || document.collection);
  }

  /** Leave the view; a question that runs goes on. */
  close() {
    this.conversation.removeEventListener("changed", this.listener);
    this.conversation.removeHidden().catch(warn);
    window.removeEventListener("pagehide", this.leaving);
    this.offering?.abort();
    this.watching?.abort();
    this.pane.close();
  }

  #turnTo(side) {
    this.element.dataset.side = side;
    for (const button of this.sides.children) button.setAttribute("aria-pressed", String(button.dataset.side === side));
    if (side === "tree" && this.pane.document) this.pane.picture.update();
  }

  #changed(what) {
    if (what === "live") this.live?.update(this.conversation.live);
    else if (what === "thread") this.#follow(this.conversation.live.thread);
    else this.#draw();
    if (what === "live") this.#keepAtEnd();
  }

  #draw() {
    const { conversation } = this;
    const path = conversation.live ? this.#livePath() : conversation.shownPath;
    const title = conversation.document?.title || path[0]?.query || conversation.live?.question;
    this.title.textContent = this.title.title = title || say("ask.new");
    document.title = title ? `${title} · judgetree` : "judgetree";
    this.live = conversation.live && new LiveTurnView(conversation.live, { onAgain: () => this.#resume(), onDismiss: () => this.#dismiss() });
    const shown = this.#shown(path);
    const turns = path.map((turn) => this.#turn(turn, path, shown));
    const open = !conversation.live && conversation.document?.open_turn;
    const rest = this.live ? this.live.element : open && openTurn(open, { onResume: () => this.#resumeOpen(open) });
    fill(this.log, ...(turns.length || rest ? [...turns, rest] : [this.welcome.element]));
    this.composer.busy = conversation.isRunning;
    if (!conversation.hidden) this.offering?.abort(); // it is deleted, or shown again
    this.branches.draw();
    this.list.draw();
    if (!conversation.live) this.#showTree(shown);
    else if (conversation.live.thread) this.#follow(conversation.live.thread);
    else {
      this.watching?.abort();
      this.watching = null;
      this.pane.show(seedOf(conversation.live.question), { isLive: conversation.isRunning });
    }
    this.log.scrollTop = this.log.scrollHeight;
  }

  #livePath() {
    const { parent } = this.conversation.live;
    return parent === NO_PARENT ? [] : this.conversation.pathTo(parent);
  }

  #shown(path) {
    return path.find((turn) => turn.turn_id === this.shownTurn) ?? path.at(-1);
  }

  #turn(turn, path, shown) {
    return savedTurn(turn, {
      siblings: this.conversation.siblings(turn),
      isNewest: turn === path.at(-1) && !this.conversation.live,
      isShown: turn === shown && !this.conversation.live,
      isBusy: this.conversation.isRunning,
      actions: {
        show: (which) => this.#look(which),
        edit: (which) => this.composer.setPlace({ parent_turn_id: which.parent_turn_id }, say("ask.editing", { number: which.turn_number }), which.query),
        branch: (which) => this.composer.setPlace({ parent_turn_id: which.turn_id }, say("ask.branching", { number: which.turn_number })),
        again: (which) => this.#ask(which.query, { parent_turn_id: which.parent_turn_id, regenerate: true }),
        undo: (which) => this.#try(() => this.#delete(which)),
        switchTo: (branch) => this.#try(() => this.conversation.switchTo(branch)),
      },
    });
  }

  async #delete(turn) {
    const { conversation } = this;
    if (!conversation.canHide(turn)) return conversation.undo(turn); // the server says why not
    if (!(await confirmed(say("turn.sure", { question: turn.query }), say("delete")))) return undefined;
    await conversation.hide(turn);
    this.offering = new AbortController();
    const isTakenBack = await offer(say("turn.deleted"), say("turn.takeBack"), this.offering.signal);
    if (conversation.hidden !== turn) return undefined; // deleted meanwhile, since something else was done
    return isTakenBack ? conversation.showHidden() : conversation.removeHidden();
  }

  async #try(task) {
    try {
      await task();
      await this.list.load();
    } catch (error) {
      warn(error);
    }
  }

  async #ask(question, place) {
    const { conversation } = this;
    if (!this.picker.model.id) return warn(say("picker.nothing"));
    kept.set(conversation.name, conversation);
    this.shownTurn = "";
    this.wantedNode = "";
    this.isNew = false;
    settle(["c", conversation.name]);
    this.asked = { question, place };
    await conversation.ask(question, { ...this.picker.options, ...place });
    kept.delete(conversation.name);
    await this.list.load().catch(warn);
  }

  // Forget a question that failed; one without an answer stands in the composer again.
  #dismiss() {
    const { question, answer } = this.conversation.live;
    this.conversation.dismiss();
    if (!answer) this.composer.begin(question);
  }

  async #resume() {
    if (this.asked && !this.conversation.live?.isSaved) return this.#ask(this.asked.question, this.asked.place);
    this.conversation.dismiss(); // it is saved, or was asked elsewhere, and may run, have ended, or be open
    return this.#try(async () => {
      await this.conversation.load();
      await this.#join();
    });
  }

  async #resumeOpen(open) {
    if (await this.#join()) return;
    await this.#ask(open.query, { parent_turn_id: open.parent_turn_id, ...(open.request_id && { request_id: open.request_id }) });
  }

  #stop() {
    this.conversation.stop().catch(warn);
  }

  #look(turn) {
    this.shownTurn = turn.turn_id;
    this.#settle({ turn: turn.turn_id, node: "" });
    for (const article of this.log.querySelectorAll(".turn")) {
      const isShown = article.dataset.turn === turn.turn_id;
      article.classList.toggle("shown", isShown);
      article.querySelector("[aria-pressed]")?.setAttribute("aria-pressed", String(isShown));
    }
    this.#showTree(turn);
    this.#turnTo("tree");
  }

  #settle(changes) {
    if (this.isNew) return;
    const query = { turn: this.shownTurn, ...changes };
    settle(["c", this.conversation.name], query);
  }

  async #showTree(turn) {
    this.watching?.abort();
    this.watching = null;
    if (!turn) return this.pane.explain(say("tree.empty"));
    if (!turn.rag_thread_id) return this.pane.explain(say("tree.noSearch", { basis: say(`basis.${turn.answered_from}`) }));
    if (this.pane.document?.root.thread_id === turn.rag_thread_id && this.pane.document.root.status === "finished") return undefined;
    const watching = (this.watching = new AbortController());
    try {
      const document = await readTree(turn.rag_thread_id);
      if (watching.signal.aborted) return undefined;
      if (this.wantedNode) this.pane.open(this.wantedNode);
      this.wantedNode = "";
      this.pane.show(document);
    } catch (error) {
      if (!watching.signal.aborted) this.pane.explain(error.message);
    }
    return undefined;
  }

  #follow(thread) {
    if (this.following === thread && this.watching) return;
    this.watching?.abort();
    const watching = (this.watching = new AbortController());
    this.following = thread;
    followTree(thread, (document) => this.pane.show(document, { isLive: true }), watching.signal)
      .catch((error) => !watching.signal.aborted && this.pane.explain(error.message))
      .finally(() => this.pane.element.classList.remove("live"));
  }

  #keepAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    if (scrollHeight - scrollTop - clientHeight < 160) this.log.scrollTop = scrollHeight;
  }
}

/** Go to a new conversation. */
export function startNew() {
  go([]);
}
