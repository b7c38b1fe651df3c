// The bar at the top: where one is, the language, the colours, the key.

import { fill, icon, iconButton, make } from "./dom.js";
import { prompted } from "./dialog.js";
import { address } from "./route.js";
import { choices, choose, key, setKey, showColours } from "./settings.js";
import { language, say } from "./words.js";

const PLACES = [["ask", []], ["runs", ["runs"]], ["collections", ["collections"]]];
const COLOURS = ["", "light", "dark"];
const PICTURES = { "": "auto", light: "sun", dark: "moon" };

/** Write the bar. */
export function drawHeader(holder, { current, onLanguage, onKey }) {
  const link = ([name, parts]) => make("a", { href: address(parts), "aria-current": name === current ? "page" : null }, say(`place.${name}`));
  const colours = choices().colours ?? "";
  const next = COLOURS[(COLOURS.indexOf(colours) + 1) % COLOURS.length];
  const repaint = () => {
    choose({ colours: next });
    showColours();
    drawHeader(holder, { current, onLanguage, onKey });
    holder.querySelector(".colours").focus();
  };
  const other = language() === "zh" ? "en" : "zh";
  const main = document.getElementById("main");
  main.tabIndex = -1;
  const skip = (event) => {
    event.preventDefault(); // the address names a view
    main.focus();
  };
  fill(holder,
    make("a.skip", { href: "#main", on: { click: skip } }, say("skip")),
    make("h1.unseen", null, current ? say(`place.${current}`) : "judgetree"),
    make("a.brand", { href: "#/", "aria-label": "judgetree" }, make("img", { src: "/assets/icon.svg", alt: "", width: 22, height: 22 }), make("span", null, "judgetree")),
    make("nav.places", { "aria-label": say("place.name") }, ...PLACES.map(link)),
    make("div.buttons", null,
      make("button.quiet.text", { type: "button", lang: other === "zh" ? "zh-CN" : "en", on: { click: () => onLanguage(other) } }, other === "zh" ? "中文" : "English"),
      iconButton(PICTURES[colours], say(`colours.${colours || "auto"}`), repaint, { className: "quiet colours" }),
      make("button", { type: "button", class: key() ? "quiet text has-key" : "quiet text", "aria-label": say("key.name"), title: say("key.name"), on: { click: () => askForKey(onKey) } }, icon("key"))));
}

/** Ask for a key and keep it for this tab. */
async function askForKey(onKey) {
  const given = await prompted(say("key.name"), { label: say("key.hint"), value: key(), type: "password", action: say("key.keep") });
  if (given === null) return;
  setKey(given);
  onKey();
}
