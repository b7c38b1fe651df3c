// Dialogs: the browser's own, which hold the focus and close with Escape.

import { iconButton, make } from "./dom.js";
import { say } from "./words.js";

/**
 * Open a dialog.
 * @param {string} title
 * @param {(Node|null|false)[]} content
 * @param {{className?: string}} [options]
 * @returns {HTMLDialogElement}
 */
export function openDialog(title, content, { className = "" } = {}) {
  const heading = make("h2", { id: "dialog-title" }, title);
  const close = iconButton("close", say("close"), () => box.close());
  const box = make("dialog", { class: className, "aria-labelledby": "dialog-title" },
    make("div.dialog-head", null, heading, close), make("div.dialog-body", { tabindex: "0" }, ...content));
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return box;
}

/** Ask whether to go on; resolves to true or false. */
export function confirmed(question, action) {
  return new Promise((resolve) => {
    const go = make("button.danger", { type: "button", on: { click: () => { resolve(true); box.close(); } } }, action);
    const leave = make("button", { type: "button", on: { click: () => box.close() } }, say("cancel"));
    const box = openDialog(question, [make("div.actions", null, leave, go)], { className: "small" });
    box.addEventListener("close", () => resolve(false));
    go.focus();
  });
}

/** Ask for a text; resolves to it, or to null. */
export function prompted(title, { label, value = "", type = "text", action }) {
  return new Promise((resolve) => {
    const field = make("input", { type, value, autocomplete: "off" });
    const form = make("form.prompt", { on: { submit } },
      make("label", null, make("span", null, label), field), make("div.actions", null, make("button.primary", { type: "submit" }, action)));
    const box = openDialog(title, [form], { className: "small" });
    box.addEventListener("close", () => resolve(null));
    field.select();
    function submit(event) {
      event.preventDefault();
      resolve(field.value.trim());
      box.close();
    }
  });
}
