// Short messages at the edge of the window, which are read out; errors stay until they are closed.

import { iconButton, make } from "./dom.js";
import { say } from "./words.js";

const SHOWN_MS = 5000;
const OFFERED_MS = 10000;

/** Show a message. */
export function tell(text) {
  show(text, { lasts: SHOWN_MS });
}

/** Show an error; one that is shown already is not shown again. */
export function warn(error) {
  const text = error instanceof Error ? error.message : String(error);
  const shown = [...document.querySelectorAll("#notices .alarm > span")];
  if (!shown.some((one) => one.textContent === text)) show(text, { className: "alarm" });
}

/** Show a message with something that can be done for a while, until the signal; resolves to whether it was. */
export function offer(text, action, signal) {
  return new Promise((resolve) => {
    const taken = make("button", { type: "button", on: { click: () => { resolve(true); box.remove(); } } }, action);
    const box = show(text, { lasts: OFFERED_MS, content: [taken], onEnd: () => resolve(false) });
    signal.addEventListener("abort", () => { resolve(false); box.remove(); });
  });
}

function show(text, { className = "", lasts = 0, content = [], onEnd = () => {} }) {
  const end = () => {
    box.remove();
    onEnd();
  };
  const box = make("div", { class: `notice ${className}` }, make("span", null, text), ...content, iconButton("close", say("close"), end));
  document.getElementById("notices").append(box);
  if (lasts) setTimeout(end, lasts);
  return box;
}
