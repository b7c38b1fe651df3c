// Where the page starts: words and colours, the bar, and the view that the address names.

import { AskView } from "./ask/ask.js";
import { CollectionsView } from "./collections/collections.js";
import { get } from "./net/api.js";
import { RunsView } from "./runs/runs.js";
import { fill, make } from "./shell/dom.js";
import { askForKey, drawHeader } from "./shell/header.js";
import { place } from "./shell/route.js";
import { choices, choose, showColours } from "./shell/settings.js";
import { chooseLanguage, say } from "./shell/words.js";

const main = document.getElementById("main");
let view = null;
let isAsking = false;

/** Make the view of the address. */
function viewOf(server) {
  const { parts, query } = place();
  if (parts[0] === "runs") return ["runs", new RunsView({ parts: parts.slice(1), query })];
  if (parts[0] === "collections") return ["collections", new CollectionsView({ name: parts[1] ?? "", query })];
  return ["ask", new AskView({ server, name: parts[0] === "c" ? parts[1] ?? "" : "", query })];
}

async function show() {
  view?.close();
  try {
    const server = await readServer();
    const [name, made] = viewOf(server);
    view = made;
    drawHeader(document.getElementById("bar"), { current: name, onLanguage: speak, onKey: show });
    document.title = name === "ask" ? "judgetree" : `${say(`place.${name}`)} · judgetree`;
    fill(main, made.element);
    await made.open();
  } catch (error) {
    drawHeader(document.getElementById("bar"), { current: "", onLanguage: speak, onKey: show });
    fill(main, make("div.welcome", { role: "alert" }, make("h2", null, say("failed")), make("p", null, error.message),
      make("button.primary", { type: "button", on: { click: show } }, say("tryAgain"))));
  }
}

async function readServer() {
  const [models, options] = await Promise.all([get("/v1/models"), get("/assets/options.json")]);
  return { models: models.data.map((model) => model.id), ...options };
}

function speak(language) {
  choose({ language });
  chooseLanguage(language);
  show();
}

async function needKey() {
  if (isAsking) return;
  isAsking = true;
  await askForKey(show);
  isAsking = false;
}

showColours();
chooseLanguage(choices().language ?? "");
window.addEventListener("hashchange", show);
document.addEventListener("key-needed", needKey);
show();
