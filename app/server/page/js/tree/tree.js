// The picture of a search tree: cards that grow, move and fold; pan, zoom, keys and search.

import { draw, make } from "../shell/dom.js";
import { say } from "../shell/words.js";
import { patternOf } from "../text/marked.js";
import { classOf, fillCard } from "./card.js";
import { asOutline, asTree, extentOf, lineBetween } from "./layout.js";
import { deadOf, foldId, leadingOf, levelOf, nodesOf, textOf, verdictOf } from "./model.js";
import { Viewport } from "./viewport.js";

const NARROW_PX = 560;
const MOST_MOVED = 200; // cards; more of them would move too slowly
const READABLE_SCALE = 9 / 12; // the smallest text of a card has 12 px, and is read from 9 px on

export class TreePicture {
  /**
   * @param {{onOpen: (node: import("./model.js").TreeNode) => void, onChange?: () => void}} options
   */
  constructor({ onOpen, onChange = () => {} }) {
    this.onOpen = onOpen;
    this.onChange = onChange;
    this.document = null;
    this.closed = new Set();
    this.opened = new Set();
    this.folds = null; // null: the room decides, as for the next
    this.outline = null;
    this.planned = { folds: false, outline: false };
    this.isSettled = false; // by the user, who opened or closed something: the shape then stays
    this.filter = { term: "", verdicts: null };
    this.current = "";
    this.boxes = new Map();
    this.cards = new Map();
    this.lines = new Map();
    this.#build();
  }

  #build() {
    this.edges = draw("svg", { class: "edges", "aria-hidden": "true", width: 1, height: 1 });
    this.nodes = make("div.nodes", { role: "tree", "aria-label": say("tree.name") });
    this.stage = make("div.stage", null, this.edges, this.nodes);
    this.element = make("div.tree-frame", null, this.stage);
    this.viewport = new Viewport(this.element, this.stage);
    this.nodes.addEventListener("click", (event) => this.#clicked(event));
    this.nodes.addEventListener("keydown", (event) => this.#pressed(event));
    this.nodes.addEventListener("focusin", (event) => this.#focused(event));
    this.resized = new ResizeObserver(() => this.document && this.#resize());
    this.resized.observe(this.element);
  }

  /** Stop watching the window. */
  close() {
    this.resized.disconnect();
  }

  /** Show a document; a new tree is shown whole, one that grows keeps the user's view. */
  show(document) {
    const isNew = this.document?.root.thread_id !== document.root.thread_id;
    this.document = document;
    if (isNew) {
      this.closed.clear();
      this.opened.clear();
      this.current = "";
      this.isSettled = false;
      this.viewport.isMoved = false;
    }
    this.update();
  }

  get isOutline() {
    return this.outline ?? (this.planned.outline || this.element.clientWidth < NARROW_PX);
  }

  /** Whether chunks that do not help share a card, and questions that led nowhere are closed. */
  get isFolding() {
    return this.folds ?? this.planned.folds;
  }

  /** Whether there is anything to fold. */
  get canFold() {
    return this.dead.size > 0 || hasFolds(nodesOf(this.document, { folds: true }));
  }

  #nodes(isFolding) {
    const closed = isFolding ? new Set([...this.closed, ...this.dead]) : this.closed;
    return nodesOf(this.document, { closed, folds: isFolding, opened: this.opened });
  }

  // The first of these that can be read: the whole tree, a folded one, an outline of that.
  #plan() {
    const isReadable = (folds) => this.#isReadable(asTree(this.#nodes(folds), this.leading));
    const isNarrow = this.element.clientWidth < NARROW_PX;
    if (!isNarrow && isReadable(this.folds ?? false)) return { folds: false, outline: false };
    return { folds: true, outline: isNarrow || !isReadable(this.folds ?? true) };
  }

  /** Draw again what has changed. */
  update() {
    if (!this.document) return;
    this.leading = leadingOf(this.document);
    this.dead = deadOf(this.document, this.leading);
    if (!this.isSettled) this.planned = this.#plan();
    this.root = this.#nodes(this.isFolding);
    const isOutline = this.isOutline;
    this.element.classList.toggle("outline", isOutline);
    this.viewport.on = !isOutline;
    const boxes = isOutline ? asOutline(this.root, this.element.clientWidth - 24) : asTree(this.root, this.leading);
    this.boxes = new Map(boxes.map((box) => [box.node.id, box]));
    this.#place(isOutline);
    if (!this.viewport.isMoved && !isOutline) this.#settle();
    this.onChange();
  }

  #resize() {
    if (!this.isSettled || this.isOutline || this.element.classList.contains("outline")) this.update();
    else if (!this.viewport.isMoved) this.#settle();
  }

  #isReadable(boxes) {
    return this.viewport.scaleFor(extentOf(boxes)) >= READABLE_SCALE;
  }

  // All cards where they can be read, else the path to the answer from the question on.
  #settle() {
    const boxes = [...this.boxes.values()];
    if (!boxes.length) return;
    if (this.#isReadable(boxes)) this.viewport.fit(extentOf(boxes));
    else this.viewport.startAt(this.boxes.get(this.root.id), extentOf(boxes), READABLE_SCALE);
  }

  /** Show all cards, however small; where they can be read, more that come are brought in too. */
  fit() {
    const boxes = [...this.boxes.values()];
    if (!boxes.length) return;
    this.viewport.fit(extentOf(boxes));
    this.viewport.isMoved = !this.#isReadable(boxes);
  }

  #place(isOutline) {
    const pattern = patternOf(this.filter.term);
    const matching = new Set(this.matches().map((node) => node.id));
    const isFiltered = Boolean(pattern || this.filter.verdicts);
    const wanted = this.boxes.has(this.current) ? this.current : this.root.id;
    let previous = null;
    this.element.classList.toggle("still", this.boxes.size > MOST_MOVED);
    for (const box of this.boxes.values()) {
      const card = this.cards.get(box.node.id) ?? this.#newCard(box);
      this.#paint(card, box, pattern);
      card.classList.toggle("dim", isFiltered && !matching.has(box.node.id));
      card.tabIndex = box.node.id === wanted ? 0 : -1;
      const place = previous ? previous.nextSibling : this.nodes.firstChild;
      if (place !== card) this.nodes.insertBefore(card, place);
      previous = card;
      if (box.node.parent) this.#line(box, isOutline);
    }
    for (const [id, card] of this.cards) if (!this.boxes.has(id)) this.#drop(id, card);
    const { y, height } = extentOf([...this.boxes.values()]);
    this.stage.style.height = isOutline ? `${y + height + 24}px` : "";
  }

  #newCard(box) {
    const card = make(this.boxes.size > MOST_MOVED ? "div.node" : "div.node.new", { role: "treeitem", "data-id": box.node.id });
    const from = this.boxes.get(box.node.parent?.id) ?? box;
    card.style.transform = `translate(${from.x}px, ${from.y}px)`;
    card.addEventListener("animationend", () => card.classList.remove("new"), { once: true });
    this.cards.set(box.node.id, card);
    return card;
  }

  #paint(card, { node, x, y, width, height }, pattern) {
    const isNew = card.classList.contains("new") ? " new" : "";
    const isLeading = this.leading.size > 1 && this.leading.has(node.id) ? " leading" : "";
    card.className = `node ${classOf(node)}${isLeading}${isNew}${node.id === this.current ? " current" : ""}`;
    const said = JSON.stringify([node.data, node.isClosed, pattern?.source, document.documentElement.lang]);
    if (card.said !== said) {
      card.said = said;
      fillCard(card, node, pattern);
    }
    card.setAttribute("aria-level", levelOf(node));
    card.style.setProperty("--level", levelOf(node)); // how far to the right it stands on paper
    card.setAttribute("aria-selected", String(node.id === this.current));
    if (node.hidden.length) card.setAttribute("aria-expanded", String(!node.isClosed));
    else card.removeAttribute("aria-expanded");
    Object.assign(card.style, { width: `${width}px`, height: `${height}px` });
    // Where the card comes from has to be seen once before it moves.
    if (isNew) void card.offsetWidth;
    card.style.transform = `translate(${x}px, ${y}px)`;
  }

  #line(box, isOutline) {
    const { node } = box;
    const line = this.lines.get(node.id) ?? this.edges.appendChild(draw("path"));
    this.lines.set(node.id, line);
    const of = node.kind === "chunk" ? node.data : node.kind === "query" ? node.parent.data : null;
    line.setAttribute("class", `edge ${node.kind} verdict-${of ? verdictOf(of) : "0"}${this.leading.has(node.id) ? " leading" : ""}`);
    line.setAttribute("d", lineBetween(this.boxes.get(node.parent.id), box, isOutline));
  }

  #drop(id, card) {
    card.remove();
    this.cards.delete(id);
    this.lines.get(id)?.remove();
    this.lines.delete(id);
  }

  /** Nodes that the search finds, in the order of the picture; none without a search. */
  matches() {
    const pattern = patternOf(this.filter.term);
    const { verdicts } = this.filter;
    if (!pattern && !verdicts) return [];
    const fits = (node) => (!verdicts || (node.kind === "chunk" && verdicts.has(verdictOf(node.data)))) && (!pattern || textOf(node).search(pattern) >= 0);
    return [...this.boxes.values()].map((box) => box.node).filter(fits);
  }

  /** Search; all that is folded opens, so that matches are seen. */
  search(filter) {
    this.filter = { ...this.filter, ...filter };
    if (this.filter.term.trim()) {
      this.closed.clear();
      this.folds = false;
      this.isSettled = true;
    }
    this.update();
  }

  /** Go to a node: it gets the focus and is brought into view. */
  goTo(id, { focus = true } = {}) {
    const box = this.boxes.get(id);
    if (!box) return;
    this.current = id;
    for (const [each, card] of this.cards) {
      card.classList.toggle("current", each === id);
      card.setAttribute("aria-selected", String(each === id));
      card.tabIndex = each === id ? 0 : -1;
    }
    if (focus) this.cards.get(id).focus({ preventScroll: true });
    this.bringIn(id);
  }

  /** Bring a node into view that is not. */
  bringIn(id) {
    if (this.isOutline) this.cards.get(id).scrollIntoView({ block: "nearest" });
    else this.viewport.bringIn(this.boxes.get(id));
  }

  /** Open or close what is below a node. */
  toggle(node, isClosed = !node.isClosed) {
    this.isSettled = true;
    if (node.kind !== "fold" && isClosed) {
      this.closed.add(node.id);
      this.opened.delete(node.id);
    } else {
      this.closed.delete(node.id);
      this.opened.add(node.id);
    }
    this.update();
  }

  /** Open what hides a node, if there is such a node. */
  reveal(id) {
    const node = withId(nodesOf(this.document), id);
    if (!node || this.boxes.has(id)) return;
    this.opened.add(foldId(node.query));
    for (let above = node.parent; above; above = above.parent) {
      this.closed.delete(above.id);
      this.opened.add(above.id);
    }
    this.isSettled = true;
    this.update();
  }

  /** Fold what does not help, or show all there is. */
  fold(isFolding) {
    this.folds = isFolding;
    this.closed.clear();
    this.opened.clear();
    this.isSettled = true;
    this.viewport.isMoved = false;
    this.update();
  }

  #clicked(event) {
    const node = this.#nodeAt(event.target);
    if (!node || this.viewport.isDragged) return;
    if (node.kind === "fold" || event.target.closest("[data-fold]")) return this.toggle(node);
    return this.onOpen(node);
  }

  #nodeAt(target) {
    return this.boxes.get(target.closest(".node")?.dataset.id)?.node;
  }

  #focused(event) {
    this.current = event.target.dataset.id ?? this.current;
    this.element.scrollTop = this.isOutline ? this.element.scrollTop : 0; // the browser scrolls to what has the focus
    this.element.scrollLeft = 0;
  }

  #pressed(event) {
    const node = this.#nodeAt(event.target);
    const action = node && !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    action(this, node);
  }

  /** Go some steps along the order of reading. */
  step(node, by) {
    const ids = [...this.boxes.keys()];
    this.goTo(ids[Math.min(Math.max(ids.indexOf(node.id) + by, 0), ids.length - 1)]);
  }
}

function hasFolds(node) {
  return node.kind === "fold" || node.children.some(hasFolds);
}

function withId(node, id) {
  if (node.id === id) return node;
  for (const child of node.children) {
    const found = withId(child, id);
    if (found) return found;
  }
  return null;
}

const inward = (picture, node) => {
  if (node.isClosed || node.kind === "fold") picture.toggle(node, false);
  else if (node.children.length) picture.goTo(node.children[0].id);
};
const outward = (picture, node) => {
  if (node.hidden.length && !node.isClosed) picture.toggle(node, true);
  else if (node.parent) picture.goTo(node.parent.id);
};
const open = (picture, node) => (node.kind === "fold" ? picture.toggle(node) : picture.onOpen(node));

// As in the tree pattern of WAI-ARIA, with plus, minus and zero for the zoom.
const KEYS = {
  ArrowDown: (picture, node) => picture.step(node, 1),
  ArrowUp: (picture, node) => picture.step(node, -1),
  ArrowRight: inward,
  ArrowLeft: outward,
  Home: (picture) => picture.goTo(picture.root.id),
  End: (picture, node) => picture.step(node, Infinity),
  Enter: open,
  " ": open,
  "+": (picture) => picture.viewport.zoom(1.25),
  "=": (picture) => picture.viewport.zoom(1.25),
  "-": (picture) => picture.viewport.zoom(0.8),
  0: (picture) => picture.fit(),
};
