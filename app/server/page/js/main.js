// Where the page starts: words and colours, the bar, and the view that the address names.

import { AskView } from "./ask/ask.js";
import { CollectionsView } from "./collections/collections.js";
import { get } from "./net/api.js";
import { RunsView } from "./runs/runs.js";
import { fill, make } from "./shell/dom.js";
import { drawHeader } from "./shell/header.js";
import { place } from "./shell/route.js";
import { choices, choose, key, setKey, showColours } from "./shell/settings.js";
import { chooseLanguage, say } from "./shell/words.js";

const main = document.getElementById("main");
let view = null;
let shown = 0; // of several that are begun, the last one counts

/** Make the view of the address. */
function viewOf(server) {
  const { parts, query } = place();
  if (parts[0] === "runs") return ["runs", new RunsView({ parts: parts.slice(1), query })];
  if (parts[0] === "collections") return ["collections", new CollectionsView({ server, name: parts[1] ?? "", query })];
  return ["ask", new AskView({ server, name: parts[0] === "c" ? parts[1] ?? "" : "", query })];
}

async function show() {
  view?.close();
  view = null;
  const number = (shown += 1);
  try {
    const options = await get("/assets/options.json");
    if (options.needs_key && !key()) return needKey();
    const models = await get("/v1/models");
    if (number !== shown) return undefined;
    const [name, made] = viewOf({ models: models.data.map((model) => model.id), ...options });
    view = made;
    head(name);
    document.title = name === "ask" ? "judgetree" : `${say(`place.${name}`)} · judgetree`;
    fill(main, made.element);
    await made.open();
  } catch (error) {
    if (error.status === 401 || number !== shown) return undefined; // needKey has the page
    if (!view) head("");
    fill(main, make("div.welcome", { role: "alert" }, make("h2", null, say("failed")), make("p", null, error.message),
      make("button.primary", { type: "button", on: { click: show } }, say("tryAgain"))));
  }
  return undefined;
}

function head(name) {
  drawHeader(document.getElementById("bar"), { current: name, onLanguage: speak, onKey: show });
}

// Ask for a key in place of the view: without one, or with a wrong one, the server answers nothing.
function needKey(problem = "") {
  view?.close();
  view = null;
  head("");
  const field = make("input", { type: "password", autocomplete: "off", "aria-label": say("key.hint") });
  const submit = (event) => {
    event.preventDefault();
    setKey(field.value.trim());
    show();
  };
  fill(main, make("form.welcome", { on: { submit } }, make("h2", null, say("key.needed")), problem && make("p.alarm", { role: "alert" }, problem),
    make("p", null, say("key.hint")), field, make("button.primary", { type: "submit" }, say("key.keep"))));
  field.focus();
}

function speak(language) {
  choose({ language });
  chooseLanguage(language);
  show();
}

showColours();
chooseLanguage(choices().language ?? "");
window.addEventListener("hashchange", show);
document.addEventListener("key-needed", (event) => needKey(event.detail));
show();
