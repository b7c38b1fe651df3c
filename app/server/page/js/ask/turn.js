// One turn of a conversation: the question, what the model thought, the answer, its sources, and what can be done.

import { fill, icon, iconButton, make } from "../shell/dom.js";
import { tell } from "../shell/notice.js";
import { hasWords, number, say, seconds } from "../shell/words.js";
import { rendered } from "../text/markdown.js";
import { reference, sourceList } from "./sources.js";

/**
 * Make a turn that is saved.
 * @param {any} turn
 * @param {{siblings: any[], isNewest: boolean, isShown: boolean, isBusy: boolean, actions: Record<string, (turn: any) => void>}} options
 */
export function savedTurn(turn, { siblings, isNewest, isShown, isBusy, actions }) {
  const { sources, rag_thread_id: thread } = turn;
  const cited = new Set();
  const answer = make(`div.answer.rendered${turn.status === "refused" ? ".refused" : ""}`, null, ...rendered(turn.answer, reference(sources, thread, cited)));
  return make("article.turn", { "data-turn": turn.turn_id, class: isShown ? "turn shown" : "turn", "aria-label": say("turn.name", { number: turn.turn_number }) },
    question(turn.query, make("div.turn-actions", null,
      siblings.length > 1 && siblingSwitch(turn, siblings, isBusy, actions),
      iconButton("edit", say("turn.edit"), () => actions.edit(turn), { disabled: isBusy }))),
    thoughts(turn.thinking),
    make("p.basis", null, basisWords(turn)),
    rewriteNote(turn),
    answer,
    sourceList(sources, thread, cited),
    make("div.turn-actions.below", null,
      make("button.quiet.text", { type: "button", "aria-pressed": String(isShown), on: { click: () => actions.show(turn) } }, icon("tree"), say("turn.tree")),
      !isNewest && iconButton("branch", say("turn.branch"), () => actions.branch(turn), { wide: true, disabled: isBusy }),
      iconButton("again", say("turn.again"), () => actions.again(turn), { disabled: isBusy }),
      iconButton("copy", say("turn.copy"), () => copy(turn.answer)),
      isNewest && iconButton("bin", say("turn.undo"), () => actions.undo(turn), { disabled: isBusy })));
}

function question(text, ...more) {
  return make("div.question", null, make("h3", null, text), ...more);
}

function siblingSwitch(turn, siblings, isBusy, actions) {
  const at = siblings.findIndex((each) => each.turn_id === turn.turn_id);
  const to = (step, name, label) => {
    const other = siblings[at + step];
    return iconButton(name, label, () => actions.switchTo(other.branch), { disabled: isBusy || !other });
  };
  return make("span.switch", { role: "group", "aria-label": say("turn.versions") },
    to(-1, "left", say("turn.earlier")), make("span", null, say("turn.version", { at: at + 1, of: siblings.length })), to(1, "right", say("turn.later")));
}

function thoughts(text, isOpen = false) {
  if (!text) return null;
  return make("details.thinking", { open: isOpen }, make("summary", null, icon("right"), say("turn.thinking")), make("p.document", null, text));
}

function basisWords(turn) {
  const { usage } = turn;
  const basis = say(turn.status === "refused" ? "basis.refused" : `basis.${turn.answered_from}`);
  const cost = usage.llm_calls
    ? [say("calls", { n: usage.llm_calls }), say("tokens", { n: usage.prompt_tokens + usage.completion_tokens }), seconds(usage.seconds)]
    : [say("noCalls")];
  if (typeof turn.cost_usd === "number" && turn.cost_usd > 0) cost.push(`$${number(turn.cost_usd, 4)}`);
  return [basis, ...cost].join(" · ");
}

function rewriteNote(turn) {
  if (!turn.standalone_query || turn.standalone_query === turn.query) return null;
  return make("p.rewrite", null, say("turn.searchedFor"), " ", make("q", null, turn.standalone_query));
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  tell(say("turn.copied"));
}

/** The turn that runs, whose parts are filled while they come. */
export class LiveTurnView {
  /** @param {{onAgain: () => void, onDismiss: () => void}} actions */
  constructor(live, actions) {
    this.actions = actions;
    this.thinking = make("p.document");
    this.thoughts = make("details.thinking", { hidden: true }, make("summary", null, icon("right"), say("turn.thinkingNow")), this.thinking);
    this.state = make("p.basis.running", { role: "status" });
    this.answer = make("div.answer.rendered");
    this.sources = make("div");
    this.end = make("div");
    this.element = make("article.turn.live.shown", { "aria-label": say("turn.running"), "aria-busy": "true" },
      question(live.question), this.thoughts, this.state, this.answer, this.sources, this.end);
    this.update(live);
  }

  /** Show what has come; answers are written once a frame. */
  update(live) {
    this.live = live;
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.#write(this.live);
    });
  }

  #write(live) {
    this.thoughts.hidden = !live.thinking;
    this.thinking.textContent = live.thinking;
    const step = `step.${live.answer && live.step !== "save_turn" ? "generate" : live.step}`;
    this.state.textContent = live.error ? "" : live.isStopping ? say("turn.stopping") : say(hasWords(step) ? step : "step.other");
    this.state.hidden = Boolean(live.error);
    if (this.written !== live.answer || this.listed !== live.sources.length) {
      const cited = new Set();
      fill(this.answer, ...rendered(live.answer, reference(live.sources, live.thread, cited)));
      fill(this.sources, sourceList(live.sources, live.thread, cited));
    }
    this.written = live.answer;
    this.listed = live.sources.length;
    this.element.setAttribute("aria-busy", String(!live.error));
    if (live.error && !this.end.childElementCount) fill(this.end, this.#failed(live.error));
  }

  #failed(error) {
    return make("div.failure", { role: "alert" }, make("p", null, error), make("div.actions", null,
      make("button", { type: "button", on: { click: this.actions.onDismiss } }, say("turn.dismiss")),
      make("button.primary", { type: "button", on: { click: this.actions.onAgain } }, say("turn.resume"))));
  }
}

/** A started turn without an answer, which the same question resumes. */
export function openTurn(turn, { onResume }) {
  return make("article.turn.open", { "aria-label": say("turn.open") }, question(turn.query),
    make("div.failure", null, make("p", null, say("turn.openHint")),
      make("div.actions", null, make("button.primary", { type: "button", on: { click: onResume } }, say("turn.resume")))));
}

/** Number of a turn as people say it. */
export function turnNumber(turn) {
  return number(turn.turn_number);
}
