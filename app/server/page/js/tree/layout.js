// Where the nodes of a tree stand: as a tree that grows to the right, or as an outline for narrow windows.

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
 * Place the nodes as a tree that grows to the right; the path to the answer is a straight line.
 * @param {import("./model.js").TreeNode} root
 * @param {Set<string>} [leading]  Ids of the nodes that lead to the answer.
 * @returns {Box[]}  In the order of reading, parents first.
 */
export function asTree(root, leading = new Set()) {
  const boxes = [];
  const collect = ({ node, shift, below }, from, depth) => {
    const height = heightOf(node);
    boxes.push({ node, x: leftOf(depth), y: from + shift - height / 2, width: WIDTH[node.kind], height });
    for (const each of below) collect(each, from + shift, depth + 1);
  };
  collect(branchOf(root, leading), 0, 0);
  return boxes;
}

// A node with all below it: `shift` down from the node above, `tops` and `bottoms` of the whole a level from the node's middle,
// `path` the number of levels on which it leads to the answer. Branches stand below each other as close as their edges allow.
function branchOf(node, leading) {
  const below = node.children.map((child) => branchOf(child, leading));
  const [tops, bottoms] = [[], []];
  for (const each of below) {
    const needed = each.tops.map((top, level) => (level in bottoms ? bottoms[level] - top + (level ? FAMILY_GAP : ROW_GAP) : -Infinity));
    each.shift = Math.max(...(bottoms.length ? needed : [0]));
    each.tops.forEach((top, level) => (tops[level] ??= top + each.shift));
    each.bottoms.forEach((bottom, level) => (bottoms[level] = bottom + each.shift));
  }
  const longest = Math.max(0, ...below.map((each) => each.path));
  const straight = longest && below.find((each) => each.path === longest);
  const middle = straight ? straight.shift : below.length ? (below[0].shift + below.at(-1).shift) / 2 : 0;
  for (const each of below) each.shift -= middle;
  const half = heightOf(node) / 2;
  return {
    node, below, shift: 0, path: leading.has(node.id) ? longest + 1 : 0,
    tops: [-half, ...tops.map((top) => top - middle)], bottoms: [half, ...bottoms.map((bottom) => bottom - middle)],
  };
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
  const boxes = [];
  let top = 0;
  const place = (node, depth) => {
    const left = Math.min(depth, 8) * INDENT;
    const box = { node, x: left, y: top, width: Math.max(width - left, 180), height: heightOf(node, true) };
    boxes.push(box);
    top += box.height + ROW_GAP - 2;
    for (const child of node.children) place(child, depth + 1);
  };
  place(root, 0);
  return boxes;
}

/** The rectangle around boxes. */
export function extentOf(boxes) {
  const edge = (pick, of) => pick(...boxes.map(of));
  const [x, y] = [edge(Math.min, (box) => box.x), edge(Math.min, (box) => box.y)];
  return { x, y, width: edge(Math.max, (box) => box.x + box.width) - x, height: edge(Math.max, (box) => box.y + box.height) - y };
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
