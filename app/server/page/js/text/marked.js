// Texts in which the matches of a search stand out.

import { make } from "../shell/dom.js";

/** What finds a text literally, in capitals or not; null for an empty one. */
export function patternOf(term) {
  const wanted = term.trim();
  return wanted ? new RegExp(wanted.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "gi") : null;
}

/** Cut a text into nodes, with its matches in marks. */
export function marked(text, pattern) {
  if (!pattern) return [text];
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    parts.push(text.slice(from, found.index), make("mark", null, found[0]));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}

/** Put the matches of a search into marks, in all texts of some nodes. */
export function withMarks(nodes, pattern) {
  if (!pattern) return nodes;
  const holder = make("div", null, ...nodes);
  const walker = document.createTreeWalker(holder, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) text.replaceWith(...marked(text.data, pattern));
  return [...holder.childNodes];
}
