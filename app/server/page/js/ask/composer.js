// Where questions are written: Enter sends, Shift+Enter starts a line, Escape takes an edit back; beside it what is asked, and the stop.

import { fill, iconButton, make } from "../shell/dom.js";
import { say } from "../shell/words.js";

export class Composer {
  /**
   * @param {{picker: import("./picker.js").Picker, onAsk: (question: string, place: any) => void, onStop: () => void}} options
   */
  constructor({ picker, onAsk, onStop }) {
    this.onAsk = onAsk;
    this.place = null; // where the question belongs, if not after the newest turn
    this.isEdit = false; // of an earlier question
    this.field = make("textarea", { rows: 1, dir: "auto", placeholder: say("ask.placeholder"), "aria-label": say("ask.question"), on: {
      input: () => this.#grow(), keydown: (event) => this.#pressed(event) } });
    this.send = iconButton("send", say("ask.send"), () => this.#ask(), { className: "primary round" });
    this.stop = iconButton("stop", say("ask.stop"), onStop, { className: "stop", wide: true });
    this.note = make("div.place", { hidden: true });
    this.element = make("form.composer", { on: { submit: (event) => event.preventDefault() } },
      this.note, this.field, make("div.composer-row", null, picker.element, make("div.buttons", null, this.stop, this.send)));
    this.busy = false;
  }

  /** While a question runs, it can be stopped, and no other one is sent. */
  set busy(isBusy) {
    this.isBusy = isBusy;
    this.stop.hidden = !isBusy;
    this.send.hidden = isBusy;
  }

  /** Ask where the next question belongs otherwise: a parent turn, with words for it, and a text to begin with. */
  setPlace(place, words = "", text = null) {
    this.place = place;
    this.note.hidden = !place;
    if (place) fill(this.note, make("span", null, words), iconButton("close", say("cancel"), () => this.#takeBack()));
    this.isEdit = Boolean(place) && text !== null;
    if (text !== null) {
      this.field.value = text;
      this.#grow();
    }
    if (place) this.field.focus();
  }

  // The next question comes after the newest turn again; the text of an edited one goes with it, that of a new one stays.
  #takeBack() {
    this.setPlace(null, "", this.isEdit ? "" : null);
    this.field.focus();
  }

  /** Begin with a question, which is not sent yet. */
  begin(question) {
    this.setPlace(null, "", question);
    this.field.focus();
  }

  /** Take the focus if nothing else has it; on touch screens, where it would open the keyboard, do not. */
  focusFirst() {
    if (document.activeElement === document.body && !matchMedia("(pointer: coarse)").matches) this.field.focus({ preventScroll: true });
  }

  #grow() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, 220)}px`;
  }

  #pressed(event) {
    // Keys also choose among the words that an input method proposes.
    if (event.isComposing) return;
    if (event.key === "Escape" && this.place) this.#takeBack();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    this.#ask();
  }

  #ask() {
    const question = this.field.value.trim();
    if (!question || this.isBusy) return;
    const { place } = this;
    this.setPlace(null, "", "");
    this.onAsk(question, place);
  }
}
