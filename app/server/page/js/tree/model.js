// A search tree document as nodes to be shown: queries, their chunks, and folds of chunks that do not help.

/**
 * @typedef {"2"|"1"|"0"|"unknown"|"cancelled"|"pending"} Verdict
 * @typedef {{id: string, kind: "query"|"chunk"|"fold", data: any, query: any, parent: TreeNode|null,
 *   children: TreeNode[], hidden: TreeNode[], isClosed: boolean}} TreeNode
 */

/** Verdicts in the order of their use, best first. */
export const VERDICTS = ["2", "1", "0", "unknown", "cancelled", "pending"];
export const MARKS = { 2: "2", 1: "1", 0: "0", unknown: "?", cancelled: "×", pending: "…" };

/**
 * The verdict on a chunk in one word.
 * @returns {Verdict}
 */
export function verdictOf(chunk) {
  const { verdict, score } = chunk.metadata;
  if (verdict !== "judged") return VERDICTS.includes(verdict) ? verdict : "pending";
  return [0, 1, 2].includes(score) ? String(score) : "unknown";
}

/** Id of the node of a query. */
export const queryId = (query) => `q:${query.thread_id}`;
/** Id of the node of a chunk, which two queries may both have found. */
export const chunkId = (query, chunk) => `c:${query.thread_id}/${chunk.chunk_id}`;

/** Id of the node that chunks of a query share which do not help. */
export const foldId = (query) => `f:${query.thread_id}`;

/**
 * Ids of the nodes that lead to the answer, the root among them: chunks that the reader saw and that help, questions that
 * such chunks asked and that were answered. The root alone while it has no answer.
 * @returns {Set<string>}
 */
export function leadingOf({ root }) {
  const found = new Set();
  const walk = (query) => {
    found.add(queryId(query));
    for (const chunk of readChunks(query)) {
      found.add(chunkId(query, chunk));
      chunk.sub_runs.filter((below) => below.answer_status === "answered").forEach(walk);
    }
  };
  walk(root);
  return found;
}

// Where it is not kept what the reader saw, all that helps counts.
function readChunks(query) {
  if (!query.answer_status) return [];
  const shown = query.chunks.filter((chunk) => chunk.metadata.shown_place);
  if (shown.length) return shown.filter((chunk) => verdictOf(chunk) !== "0");
  return query.chunks.filter((chunk) => ["1", "2"].includes(verdictOf(chunk)));
}

/**
 * Ids of the questions that do not lead to the answer; before there is one, of those that ended without an answer of their own.
 * @returns {Set<string>}
 */
export function deadOf({ root }, leading) {
  const isOver = root.status !== "open";
  const isDead = (query) => !leading.has(queryId(query)) && (isOver || !(query.status === "open" || query.answer_status === "answered"));
  return new Set([...queriesOf(root)].filter(isDead).map(queryId));
}

/**
 * Make the nodes of a tree.
 * @param {any} document  A search tree as the server writes it.
 * @param {{closed?: Set<string>, folds?: boolean, opened?: Set<string>}} [options]  Nodes that are closed; whether chunks
 *   that do not help share one node; closed nodes and folds that are open nevertheless.
 * @returns {TreeNode}
 */
export function nodesOf(document, { closed = new Set(), folds = false, opened = new Set() } = {}) {
  const queryNode = (query, parent) => {
    const node = newNode(queryId(query), "query", query, query, parent);
    const all = query.chunks.map((chunk) => chunkNode(query, chunk, node));
    node.hidden = all;
    node.isClosed = closed.has(node.id) && !opened.has(node.id) && all.length > 0;
    node.children = node.isClosed ? [] : folded(node, all);
    return node;
  };
  const chunkNode = (query, chunk, parent) => {
    const node = newNode(chunkId(query, chunk), "chunk", chunk, query, parent);
    const all = chunk.sub_runs.map((below) => queryNode(below, node));
    node.hidden = all;
    node.isClosed = closed.has(node.id) && !opened.has(node.id) && all.length > 0;
    node.children = node.isClosed ? [] : all;
    return node;
  };
  const folded = (parent, chunks) => {
    const useless = chunks.filter((node) => verdictOf(node.data) === "0" && !node.hidden.length);
    const id = foldId(parent.data);
    if (!folds || useless.length < 2 || opened.has(id)) return chunks;
    const fold = newNode(id, "fold", { chunks: useless.map((node) => node.data) }, parent.data, parent);
    return [...chunks.filter((node) => !useless.includes(node)), fold];
  };
  return queryNode(document.root, null);
}

function newNode(id, kind, data, query, parent) {
  return { id, kind, data, query, parent, children: [], hidden: [], isClosed: false };
}

/** How deep a node stands in its tree; the root's level is 1. */
export function levelOf(node) {
  return node.parent ? levelOf(node.parent) + 1 : 1;
}

/** All queries of a tree, parents first. */
export function* queriesOf(query) {
  yield query;
  for (const chunk of query.chunks) for (const below of chunk.sub_runs) yield* queriesOf(below);
}

/** Calls that a query made itself, those about one chunk if it is given. */
export function callsOf(query, chunkIdOf = null) {
  return query.usage.filter((call) => chunkIdOf === null || call.chunk_id === chunkIdOf);
}

/**
 * What calls of chat models took together.
 * @returns {{calls: number, tokens: number, seconds: number}}
 */
export function costOf(calls) {
  const paid = calls.filter((call) => call.kind === "chat" && !call.cached);
  return {
    calls: paid.length,
    tokens: paid.reduce((sum, call) => sum + call.prompt_tokens + call.completion_tokens, 0),
    seconds: paid.reduce((sum, call) => sum + call.seconds, 0),
  };
}

/** Why replies to calls are worse than they look: kinds, each once, in the order of the calls. Mostly none. */
export function caveatsOf(calls) {
  const kinds = calls.flatMap((call) => {
    const found = call.caveats ?? [];
    return call.cut_off && !found.includes("filtered") ? [...found, "reply_cut"] : found;
  });
  return [...new Set(kinds)];
}

/** Sizes and costs of a whole tree. */
export function totalsOf(document) {
  const queries = [...queriesOf(document.root)];
  const chunks = queries.flatMap((query) => query.chunks);
  const counts = Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0]));
  for (const chunk of chunks) counts[verdictOf(chunk)] += 1;
  const paid = queries.filter((query) => !query.linked_from);
  return { queries: queries.length, chunks: chunks.length, counts, cost: costOf(paid.flatMap((query) => query.usage)) };
}

/** All that a search looks through in a node. */
export function textOf(node) {
  if (node.kind === "query") return [node.data.query, node.data.answer, node.data.error].join("\n");
  if (node.kind === "fold") return "";
  const { source, title, reason, next_query, sub_answer } = node.data.metadata;
  return [node.data.text, source, title, reason, next_query, sub_answer].filter(Boolean).join("\n");
}

/** The tree of a question before its search has begun: the root alone. */
export function seedOf(question) {
  const root = { thread_id: "", query: question, status: "open", answer: "", answer_status: "", error: "", depth: 0, set_suffices: null, linked_from: "", evidence: "", chunks: [], usage: [] };
  return { fingerprint: {}, root };
}
