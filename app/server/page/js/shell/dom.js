// Elements without markup: every text becomes a text node, so that no document or model can write into the page.

/**
 * Make an element.
 * @param {string} tag  Name, with classes after dots: "button.quiet".
 * @param {Record<string, unknown>|null} [given]  Attributes; "on" holds listeners, "style" custom properties.
 * @param {...(Node|string|number|null|undefined|false|Array<Node|string|null|undefined|false>)} content
 * @returns {HTMLElement}
 */
export function make(tag, given, ...content) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  setAll(element, given ?? {});
  element.append(...childrenOf(content));
  return element;
}

/**
 * Make an SVG element.
 * @param {string} name
 * @param {Record<string, unknown>} [given]
 * @param {...Node} content
 * @returns {SVGElement}
 */
export function draw(name, given, ...content) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(given ?? {})) element.setAttribute(key, String(value));
  element.append(...content);
  return element;
}

/** Replace what an element holds. */
export function fill(element, ...content) {
  element.replaceChildren(...childrenOf(content));
  return element;
}

function childrenOf(content) {
  return content.flat().filter((part) => part !== null && part !== undefined && part !== false).map(asNode);
}

function asNode(part) {
  return part instanceof Node ? part : document.createTextNode(String(part));
}

function setAll(element, given) {
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (key === "style") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else if (key === "value") element.value = value;
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, String(value));
  }
}

/** Make a button with a picture, and a name that is read out; the name shows too where "wide" is set. */
export function iconButton(name, label, listener, { wide = false, className = "quiet", ...given } = {}) {
  const shown = wide ? [icon(name), make("span", null, label)] : [icon(name)];
  const named = wide ? {} : { "aria-label": label, title: label };
  return make(`button.${className.replaceAll(" ", ".")}`, { type: "button", ...named, ...given, on: { click: listener } }, ...shown);
}

const PATHS = {
  send: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  stop: "M4.5 4.5h7v7h-7z",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  close: "m4 4 8 8M12 4l-8 8",
  branch: "M5 5.5v5M5 10.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3ZM5 2.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3ZM11 4.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3ZM11 7.5c0 2-2 2.5-6 3",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  undo: "M6 4 3 7l3 3M3 7h6.5a3.5 3.5 0 0 1 0 7H7",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  edit: "M3 13l.7-3L11 2.7l2.3 2.3L6 12.3 3 13Z",
  tree: "M2 6.5h4v3H2zM10 2.5h4v3h-4zM10 10.5h4v3h-4zM6 8h2M8 4v8M8 4h2M8 12h2",
  list: "M3 4h2M3 8h2M3 12h2M7 4h6M7 8h6M7 12h6",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM10 10l3.5 3.5",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M3.2 12.8l1.1-1.1M11.7 4.3l1.1-1.1",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6Z",
  auto: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 2.5v11M8 5h3.6M8 8h5M8 11h3.6",
  key: "M10.5 3a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5ZM8.6 7.4 3 13M5 11l1.5 1.5",
  tune: "M3 4.5h6M12 4.5h1M3 11.5h1M7 11.5h6M10.5 3a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3ZM5.5 10a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3Z",
  bin: "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9",
  left: "M10 3 5 8l5 5",
  right: "m6 3 5 5-5 5",
  down: "m3 6 5 5 5-5",
  up: "m3 10 5-5 5 5",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  upload: "M8 10.5V3M5 6l3-3 3 3M3 11v2.5h10V11",
};

/** Make a picture of 16 units that takes the colour of the text around it. */
export function icon(name) {
  const path = draw("path", { d: PATHS[name], fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return draw("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, path);
}
