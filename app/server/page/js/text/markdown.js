// Markdown of models and documents as elements: the parser's tokens become nodes, never markup. Links lead to http, https
// or this server alone; pictures become links, since the page loads nothing from elsewhere.

import MarkdownIt from "../../vendor/markdown-it.esm.min.mjs";
import { make } from "../shell/dom.js";

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true });
parser.validateLink = isSafe;

const TAGS = new Set("p h1 h2 h3 h4 h5 h6 ul ol li blockquote em strong s code pre hr br table thead tbody tr th td".split(" "));
const OWN_DIRECTION = new Set(["ul", "ol", "blockquote"]); // paragraphs and headings have theirs by their style
const CITATION = /\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]/g;
const PLAIN_CHARACTERS = 1000;

/** Whether a link may be followed: http, https, or a path of this server. */
export function isSafe(href) {
  try {
    return ["http:", "https:"].includes(new URL(href, location.href).protocol);
  } catch {
    return false;
  }
}

/**
 * Turn Markdown into nodes.
 * @param {string} text
 * @param {(number: number) => Node|null} [cite]  Makes the node of a reference such as [2]; null leaves its text.
 * @param {{below?: number}} [options]  Level of the heading that the text stands below.
 * @returns {Node[]}
 */
export function rendered(text, cite = () => null, { below = 3 } = {}) {
  const root = make("div");
  build(root, parser.parse(text, {}), { cite, below, above: [] });
  return [...root.childNodes];
}

/** The beginning of a Markdown text without its marks, on one line. */
export function plain(text) {
  const words = [];
  for (const token of parser.parse(text.slice(0, PLAIN_CHARACTERS), {})) {
    if (token.type === "inline") words.push(token.children.map((part) => (part.type.endsWith("break") ? " " : part.content)).join(""));
    else if (token.type === "fence" || token.type === "code_block") words.push(token.content);
  }
  return words.join(" ").replace(/\s+/g, " ").trim();
}

function build(root, tokens, state) {
  const open = [root];
  for (const token of tokens) {
    const top = open.at(-1);
    if (token.type === "inline") build(top, token.children, state);
    else if (token.type === "text") top.append(...cited(token.content, state.cite));
    else if (token.type === "softbreak" || token.type === "hardbreak") top.append(make("br"));
    else if (token.type === "code_inline") top.append(make("code", null, token.content));
    else if (token.type === "fence" || token.type === "code_block") {
      top.append(make("pre", { tabindex: "0", dir: "ltr" }, make("code", null, token.content)));
    } else if (token.type === "image") top.append(linkOf(token.attrGet("src"), token.content || token.attrGet("src")));
    else if (token.nesting === 1) open.push(opened(top, token, state));
    else if (token.nesting === -1) open.pop();
    else if (TAGS.has(token.tag)) top.append(make(token.tag));
    else top.append(token.content);
  }
}

function opened(top, token, state) {
  if (token.hidden) return top; // the paragraphs of a tight list
  const element = token.tag === "a" ? linkOf(token.attrGet("href")) : make(TAGS.has(token.tag) ? lowered(token.tag, state) : "span");
  if (OWN_DIRECTION.has(token.tag)) element.dir = "auto";
  const align = /text-align:(left|right|center)/.exec(token.attrGet("style") ?? "");
  if (align) element.style.textAlign = align[1];
  if (token.tag === "ol" && token.attrGet("start")) element.setAttribute("start", token.attrGet("start"));
  if (token.tag === "table") {
    top.append(make("div.wide", { tabindex: "0", dir: "auto" }, element));
  } else top.append(element);
  return element;
}

// Headings of a text stand below those of the page, without a gap wherever they begin.
function lowered(tag, { below, above }) {
  if (!/^h[1-6]$/.test(tag)) return tag;
  const level = Number(tag[1]);
  while (above.at(-1) >= level) above.pop();
  above.push(level);
  return `h${Math.min(below + above.length, 6)}`;
}

function linkOf(href, ...content) {
  if (!isSafe(href)) return make("span", null, ...content);
  return make("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...content);
}

function cited(text, cite) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(CITATION)) {
    const numbers = found[1].split(/[,;]/).map(Number);
    const nodes = numbers.map(cite);
    if (!nodes.some(Boolean)) continue;
    parts.push(text.slice(from, found.index), ...nodes.map((node, at) => node ?? `[${numbers[at]}]`));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)].filter((part) => part !== "");
}
