// Markdown of models as elements: the parser's tokens become nodes, never markup. Links lead to http, https or this
// server alone; pictures become links, since the page loads nothing from elsewhere.

import MarkdownIt from "../../vendor/markdown-it.esm.min.mjs";
import { make } from "../shell/dom.js";

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true });
parser.validateLink = isSafe;

const TAGS = new Set("p h1 h2 h3 h4 h5 h6 ul ol li blockquote em strong s code pre hr br table thead tbody tr th td".split(" "));

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
 * @returns {Node[]}
 */
export function rendered(text, cite = () => null) {
  const root = make("div");
  build(root, parser.parse(text, {}), cite);
  return [...root.childNodes];
}

function build(root, tokens, cite) {
  const open = [root];
  for (const token of tokens) {
    const top = open.at(-1);
    if (token.type === "inline") build(top, token.children, cite);
    else if (token.type === "text") top.append(...cited(token.content, cite));
    else if (token.type === "softbreak" || token.type === "hardbreak") top.append(make("br"));
    else if (token.type === "code_inline") top.append(make("code", null, token.content));
    else if (token.type === "fence" || token.type === "code_block") {
      top.append(make("pre", { tabindex: "0" }, make("code", null, token.content)));
    } else if (token.type === "image") top.append(linkOf(token.attrGet("src"), token.content || token.attrGet("src")));
    else if (token.nesting === 1) open.push(opened(top, token));
    else if (token.nesting === -1) open.pop();
    else if (TAGS.has(token.tag)) top.append(make(token.tag));
    else top.append(token.content);
  }
}

function opened(top, token) {
  if (token.hidden) return top; // the paragraphs of a tight list
  const element = token.tag === "a" ? linkOf(token.attrGet("href")) : make(TAGS.has(token.tag) ? lowered(token.tag) : "span");
  const align = /text-align:(left|right|center)/.exec(token.attrGet("style") ?? "");
  if (align) element.style.textAlign = align[1];
  if (token.tag === "ol" && token.attrGet("start")) element.setAttribute("start", token.attrGet("start"));
  if (token.tag === "table") {
    top.append(make("div.wide", { tabindex: "0" }, element));
  } else top.append(element);
  return element;
}

// Headings of an answer stand below those of the page.
function lowered(tag) {
  return /^h[1-6]$/.test(tag) ? `h${Math.min(Number(tag[1]) + 3, 6)}` : tag;
}

function linkOf(href, ...content) {
  if (!isSafe(href)) return make("span", null, ...content);
  return make("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...content);
}

function cited(text, cite) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(/\[(\d{1,3})\]/g)) {
    const node = cite(Number(found[1]));
    if (!node) continue;
    parts.push(text.slice(from, found.index), node);
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)].filter((part) => part !== "");
}
