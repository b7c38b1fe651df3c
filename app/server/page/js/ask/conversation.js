// One conversation: its turns as the server keeps them, and the question that runs.

import { Failure, get, path, post, remove, stream } from "../net/api.js";
import { say } from "../shell/words.js";

/**
 * @typedef {{question: string, parent: string, thinking: string, answer: string, sources: any[], thread: string,
 *   step: string, error: string, isStopping: boolean, isSaved: boolean}} LiveTurn
 */

/** Parent of the first turn of a branch that starts the conversation, as the server names it. */
export const NO_PARENT = "";

export class Conversation extends EventTarget {
  /** @param {string} name */
  constructor(name) {
    super();
    this.name = name;
    this.document = null;
    /** @type {LiveTurn|null} */
    this.live = null;
    this.hidden = null; // the newest turn, which is deleted unless it is shown again
    /** Whether a question runs. */
    this.isRunning = false;
  }

  #changed(what) {
    this.dispatchEvent(new CustomEvent("changed", { detail: what }));
  }

  #where(tail = "") {
    return path`/v1/conversations/${this.name}` + tail;
  }

  /** Read all turns; a conversation that does not exist yet has none. */
  async load() {
    await this.removeHidden();
    try {
      this.document = await get(this.#where());
    } catch (error) {
      if (error.status !== 404) throw error;
      this.document = null;
    }
    this.#changed("turns");
  }

  /** All turns, in the order of their answers. */
  get turns() {
    return this.document?.turns ?? [];
  }

  /** The turns from the first to the newest of the active branch. */
  get shownPath() {
    const branch = this.document?.branches.find((each) => each.name === this.document.active_branch);
    const found = branch ? this.pathTo(branch.head_turn_id) : [];
    return this.hidden ? found.filter((turn) => turn.turn_id !== this.hidden.turn_id) : found;
  }

  /** The turns from the first to a given one. */
  pathTo(turnId) {
    const known = new Map(this.turns.map((turn) => [turn.turn_id, turn]));
    const found = [];
    for (let turn = known.get(turnId); turn; turn = known.get(turn.parent_turn_id)) found.unshift(turn);
    return found;
  }

  /** Turns that follow the same turn, oldest first, the given one among them. */
  siblings(turn) {
    return this.turns.filter((each) => each.parent_turn_id === turn.parent_turn_id && each.turn_id !== this.hidden?.turn_id);
  }

  /**
   * Ask a question, and keep what comes in ``live`` until the turn is saved.
   * @param {string} question
   * @param {Record<string, unknown>} options  Model, limits, and where the question belongs.
   */
  async ask(question, options) {
    await this.removeHidden().catch(() => {}); // what cannot be deleted stays, and the question comes after it
    const parent = options.parent_turn_id ?? this.shownPath.at(-1)?.turn_id ?? NO_PARENT;
    await this.#watch(newLive(question, parent), stream("POST", this.#where("/questions"), { body: { question, ...options } }));
  }

  /**
   * Watch the question that the server is answering, asked in another tab or before a reload, until its turn is saved.
   * Returns whether there was one.
   */
  async join() {
    const open = this.document?.open_turn;
    if (!open || this.isRunning) return false;
    const events = stream("GET", this.#where("/questions"));
    try {
      await events.next(); // the session, which is known
    } catch (error) {
      if (error.status !== 409) throw error;
      await this.load(); // it may have ended meanwhile
      return false;
    }
    await this.#watch(newLive(open.query, open.parent_turn_id), events);
    return true;
  }

  async #watch(live, events) {
    this.live = live;
    this.isRunning = true;
    this.#changed("turns");
    try {
      for await (const { event, data } of events) this.#take(event, JSON.parse(data));
      if (!this.live.error) await this.#saved();
    } catch (error) {
      if (this.live) this.live.error = error instanceof Failure ? error.message : say("ask.lost");
    } finally {
      this.isRunning = false;
      this.#changed("turns");
    }
  }

  async #saved() {
    this.document = await get(this.#where());
    this.live = null;
  }

  #take(event, data) {
    const { live } = this;
    if (event === "thinking" || event === "content") {
      const name = event === "content" ? "answer" : "thinking";
      live[name] = data.restarted ? data.text : live[name] + data.text;
    } else if (event === "source") live.sources.push(data);
    else if (event === "error") live.error = data.message ?? data.error?.message ?? String(data);
    else if (event === "tree") {
      live.step = stepOf(data);
      if (data.event.root_thread_id && !live.thread) {
        live.thread = data.event.root_thread_id;
        this.#changed("thread");
      }
    } else if (event === "done" && data.error) live.error = data.error;
    else if (event === "done") live.isSaved = true;
    this.#changed("live");
  }

  /** Stop searching, and answer from what was found. */
  async stop() {
    if (!this.live) return;
    this.live.isStopping = true;
    this.#changed("live");
    await post(this.#where("/questions/stop"), {});
  }

  /** Forget a question that failed. */
  dismiss() {
    this.live = null;
    this.#changed("turns");
  }

  /** Show another branch. */
  async switchTo(branch) {
    await this.removeHidden();
    await post(this.#where("/branch"), { branch });
    await this.load();
  }

  /** Give a branch another name. */
  async rename(branch, newName) {
    await post(this.#where("/branch"), { branch, new_name: newName });
    await this.load();
  }

  /** Delete a branch with its turns. */
  async removeBranch(branch) {
    await this.removeHidden();
    await remove(this.#where(path`/branches/${branch}`));
    await this.load();
  }

  /** Whether the newest turn of the active branch can be deleted: it is of this branch, and nothing follows it. */
  canHide(turn) {
    const isFollowed = this.turns.some((each) => each.parent_turn_id === turn.turn_id && each.turn_id !== this.hidden?.turn_id);
    return turn.branch === this.document.active_branch && !isFollowed;
  }

  /** Hide the newest turn of the active branch until it is deleted or shown again; one that is hidden is deleted now. */
  async hide(turn) {
    await this.removeHidden();
    this.hidden = turn;
    this.#changed("turns");
  }

  /** Show the hidden turn again. */
  showHidden() {
    this.hidden = null;
    this.#changed("turns");
  }

  /** Delete the hidden turn, if there is one, also while the page is left. */
  async removeHidden() {
    if (!this.hidden) return;
    const turn = this.hidden;
    this.hidden = null;
    await this.undo(turn);
  }

  /** Delete a turn, the newest of the active branch; what cannot be deleted is shown again. */
  async undo(turn) {
    try {
      await post(this.#where("/undo"), { turn_id: turn.turn_id }, { keepalive: true });
    } catch (error) {
      this.#changed("turns");
      await this.load().catch(() => {});
      throw error;
    }
    await this.load();
  }
}

// What is done now: the step of the turn, or within its search the work that follows the newest event.
function stepOf({ node, event: { event, depth } }) {
  if (depth > 0 || event === "sub_run_done") return "call_new_rag";
  return { chunks: "judge", verdict: "judge", set_verdict: "judge", answering: "generate", answer: "generate" }[event] ?? node;
}

/** @returns {LiveTurn} */
function newLive(question, parent) {
  return { question, parent, thinking: "", answer: "", sources: [], thread: "", step: "", error: "", isStopping: false, isSaved: false };
}

/** The name of a new conversation. */
export function newName() {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return `c-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
