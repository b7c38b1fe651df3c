// Where two search trees part: questions are paired by their places, chunks by their ids.

import { nameOf } from "../text/names.js";
import { verdictOf } from "../tree/model.js";

/**
 * @typedef {{kind: "answer"|"verdict"|"chunk"|"asked", query: string, name: string, a: string, b: string, nodeA: string, nodeB: string}} Difference
 */

/**
 * List how the second tree differs from the first, in the order of the search.
 * @returns {Difference[]}
 */
export function differences(first, second) {
  const found = [];
  pairQueries(first.root, second.root, found);
  return found;
}

function pairQueries(a, b, found) {
  const ids = { nodeA: `q:${a.thread_id}`, nodeB: `q:${b.thread_id}` };
  const chunksOfB = new Map(b.chunks.map((chunk) => [chunk.chunk_id, chunk]));
  const deeper = [];
  for (const chunk of a.chunks) {
    const other = chunksOfB.get(chunk.chunk_id);
    chunksOfB.delete(chunk.chunk_id);
    pairChunks(a, chunk, b, other, found, deeper);
  }
  for (const other of chunksOfB.values()) pairChunks(a, null, b, other, found, deeper);
  for (const [one, two] of deeper) {
    if (one && two) pairQueries(one, two, found);
    else found.push({ kind: "asked", query: (one ?? two).query, name: "", a: one?.query ?? "", b: two?.query ?? "", nodeA: one ? `q:${one.thread_id}` : "", nodeB: two ? `q:${two.thread_id}` : "" });
  }
  if (a.answer !== b.answer) found.push({ kind: "answer", query: a.query, name: "", a: a.answer, b: b.answer, ...ids });
}

function pairChunks(a, one, b, two, found, deeper) {
  const place = {
    query: a.query, name: nameOf((one ?? two).metadata),
    nodeA: one ? `c:${a.thread_id}/${one.chunk_id}` : "", nodeB: two ? `c:${b.thread_id}/${two.chunk_id}` : "",
  };
  const [left, right] = [one ? verdictOf(one) : "", two ? verdictOf(two) : ""];
  if (left !== right) found.push({ kind: one && two ? "verdict" : "chunk", a: left, b: right, ...place });
  const [subA, subB] = [one?.sub_runs ?? [], two?.sub_runs ?? []];
  for (let at = 0; at < Math.max(subA.length, subB.length); at += 1) deeper.push([subA[at], subB[at]]);
}
