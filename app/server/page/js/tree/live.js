// Trees from the server: whole, or growing by a snapshot and patches, from where a broken connection left off.

import { Failure, get, path, stream } from "../net/api.js";
import { patched } from "../net/patch.js";

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5000;

/** Get a tree as it is now. */
export function readTree(thread) {
  return get(path`/v1/trees/${thread}?format=json`);
}

/**
 * Follow a tree until it has ended.
 * @param {string} thread
 * @param {(document: any) => void} show  Called with each state; the document is the same object, changed.
 * @param {AbortSignal} signal
 */
export async function followTree(thread, show, signal) {
  const seen = { document: null, id: "", hasEnded: false };
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted && !seen.hasEnded) {
    try {
      for await (const event of stream("GET", path`/v1/trees/${thread}/events?wait=10`, { signal, lastId: seen.id })) {
        take(event, seen);
        pause = FIRST_PAUSE_MS;
        if (seen.document) show(seen.document);
        if (seen.hasEnded) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      // 404: the search has no checkpoint yet
      if (error.status && ![404, 429, 502, 503].includes(error.status)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

function take({ event, data, id }, seen) {
  if (id) seen.id = id;
  if (event === "snapshot") seen.document = JSON.parse(data);
  else if (event === "delta" && seen.document) seen.document = patched(seen.document, JSON.parse(data));
  else if (event === "error") throw new Failure(500, JSON.parse(data).error.message);
  else if (event === "end") seen.hasEnded = true;
}
