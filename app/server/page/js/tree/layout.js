// Where the nodes of a tree stand: as a tree that grows to the right, or as an outline for narrow windows.

import { hierarchy, tree } from "../../vendor/d3-hierarchy.min.mjs";
import { caveatsOf } from "./model.js";

export const WIDTH = { query: 190, chunk: 172, fold: 172 };
const COLUMN_GAP = 22;
const ROW_GAP = 10;
const FAMILY_GAP = 22;
const INDENT = 18;

/**
 * @typedef {{node: import("./model.js").TreeNode, x: number, y: number, width: number, height: number}} Box
 */

/** Height of a card: rows that every card of its kind has, and those that it has besides; an outline's are wider. */
export function heightOf(node, isOutline = false) {
  if (node.kind === "fold") return 40;
  if (node.kind === "query") return (isOutline ? 92 : 114) + (caveatsOf(node.data.usage).length ? 20 : 0);
  return 70 + (noteOf(node.data) ? 20 : 0);
}

/** The key of what a chunk's card says below: why it asked nothing, what went wrong, what linked it; "" for nothing. */
export function noteOf(chunk) {
  const { skipped, sub_run_error: error, shared_thread_id: shared, linked_by: linked } = chunk.metadata;
  if (skipped) return `skip.${skipped}`;
  if (error) return "chunk.error";
  if (shared) return "chunk.shared";
  return linked ? "chunk.linked" : "";
}

/**
 * Place the nodes as a tree that grows to the right (Reingold and Tilford's way).
 * @returns {Box[]}  In the order of reading, parents first.
 */
export function asTree(root) {
  const placed = hierarchy(root, (node) => node.children);
  tree()
    .nodeSize([1, 1])
    .separation((a, b) => (heightOf(a.data) + heightOf(b.data)) / 2 + (a.parent === b.parent ? ROW_GAP : FAMILY_GAP))(placed);
  return inReadingOrder(placed).map(({ data: node, x, depth }) => {
    const height = heightOf(node);
    return { node, x: leftOf(depth), y: x - height / 2, width: WIDTH[node.kind], height };
  });
}

// d3 lists level by level; a tree is read branch by branch.
function inReadingOrder(placed) {
  const found = [];
  placed.eachBefore((item) => found.push(item));
  return found;
}

function leftOf(depth) {
  const chunks = Math.floor(depth / 2);
  return (depth - chunks) * (WIDTH.query + COLUMN_GAP) + chunks * (WIDTH.chunk + COLUMN_GAP);
}

/**
 * Place the nodes below each other, each level further to the right.
 * @returns {Box[]}  From top to bottom.
 */
export function asOutline(root, width) {
  let top = 0;
  return inReadingOrder(hierarchy(root, (node) => node.children)).map(({ data: node, depth }) => {
    const left = Math.min(depth, 8) * INDENT;
    const box = { node, x: left, y: top, width: Math.max(width - left, 180), height: heightOf(node, true) };
    top += box.height + ROW_GAP - 2;
    return box;
  });
}

/** The line from a box to one of its children. */
export function lineBetween(from, to, isOutline) {
  if (isOutline) {
    const x = from.x + 8;
    return `M${x},${from.y + from.height}V${to.y + to.height / 2}H${to.x}`;
  }
  const start = [from.x + from.width, from.y + from.height / 2];
  const end = [to.x, to.y + to.height / 2];
  const middle = (start[0] + end[0]) / 2;
  return `M${start}C${middle},${start[1]} ${middle},${end[1]} ${end}`;
}
