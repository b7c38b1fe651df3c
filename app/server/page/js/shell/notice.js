// Short messages at the edge of the window, which are read out; errors stay until they are closed.

import { iconButton, make } from "./dom.js";
import { say } from "./words.js";

const SHOWN_MS = 5000;

/** Show a message. */
export function tell(text) {
  show(text, false);
}

/** Show an error. */
export function warn(error) {
  show(error instanceof Error ? error.message : String(error), true);
}

function show(text, isError) {
  const box = make(isError ? "div.notice.alarm" : "div.notice", null, make("span", null, text));
  box.append(iconButton("close", say("close"), () => box.remove()));
  document.getElementById("notices").append(box);
  if (!isError) setTimeout(() => box.remove(), SHOWN_MS);
}
