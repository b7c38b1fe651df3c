// What of a page is cut off without a scrollbar, wider than the window, or broken inside a word: all elements and texts,
// by their boxes. Returns sentences, none where all fits.

const SCROLLERS = "pre, .wide, textarea, input, .tree-frame.outline"; // may be wider inside, and have the focus
const CANVAS = ".tree-frame:not(.outline) .stage"; // is panned
const HIDES = new Set(["hidden", "clip"]);
const found = new Set();
const said = (node) => {
  const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
  return `${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""} “${node.textContent.trim().slice(0, 40)}”`;
};
const styleOf = (element) => getComputedStyle(element);
const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest(".unseen, .skip:not(:focus), svg, option");
// An ellipsis says that there is more, and the whole text is one step away.
const tellsMore = (element) => {
  const style = styleOf(element);
  return style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none";
};

function isInside(node, rect) {
  if (rect.width < 1 || rect.height < 1) return;
  for (let box = node.parentElement; box && box !== document.documentElement; box = box.parentElement) {
    const style = styleOf(box);
    if (tellsMore(box) || box.matches(CANVAS)) return;
    const edge = box.getBoundingClientRect();
    if (style.overflowX !== "visible" && !HIDES.has(style.overflowX)) return; // scrolls: see isScrolling
    if (HIDES.has(style.overflowX) && (rect.right > edge.right + 1 || rect.left < edge.left - 1)) found.add(`cut at the side: ${said(node)} in ${said(box)}`);
    if (HIDES.has(style.overflowY) && (rect.bottom > edge.bottom + 1.5 || rect.top < edge.top - 1.5)) found.add(`cut at the bottom: ${said(node)} in ${said(box)}`);
    if (HIDES.has(style.overflowX)) return;
    if (style.position === "fixed") break;
  }
  if (rect.right > innerWidth + 1 || rect.left < -1) found.add(`wider than the window: ${said(node)}`);
}

function checkScrolling(element) {
  const style = styleOf(element);
  if (element.scrollWidth <= element.clientWidth + 1 || !element.clientWidth) return;
  if (HIDES.has(style.overflowX)) return; // its parts are looked at
  if (style.overflowX !== "visible" && !element.matches(SCROLLERS)) found.add(`scrolls sideways: ${said(element)}`);
}

function checkWords(cell) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const word of node.textContent.matchAll(/[\p{L}\p{N}]+/gu)) {
      if (word[0].length > 24 || /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(word[0])) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top)));
      if (tops.size > 1) found.add(`broken inside a word: ${word[0]} in ${said(cell)}`);
    }
  }
}

for (const element of document.body.querySelectorAll("*")) {
  if (!isSeen(element)) continue;
  isInside(element, element.getBoundingClientRect());
  checkScrolling(element);
  if (element.matches("td, th")) checkWords(element);
  for (const node of element.childNodes) {
    if (node.nodeType !== Node.TEXT_NODE || !node.textContent.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) isInside(node, rect);
    if (!tellsMore(element) && !["SELECT", "TEXTAREA"].includes(element.tagName)) {
      const box = element.closest("button, a.button, .badge, .node, td, th");
      const edge = box?.getBoundingClientRect();
      const held = [...(function* up(each) { for (let at = each; at && at !== box; at = at.parentElement) yield at; })(element)];
      if (box && !held.some(tellsMore) && !tellsMore(box) && [...range.getClientRects()].some((rect) => rect.right > edge.right + 1 || rect.left < edge.left - 1)) {
        found.add(`runs over its box: ${said(node)} in ${said(box)}`);
      }
    }
  }
}
if (document.documentElement.scrollHeight > innerHeight) found.add("the page itself scrolls, besides its parts");
return [...found];
