// Requests to the server. Each carries the key, if the user gave one; errors come in the server's own words.

import { key } from "../shell/settings.js";
import { eventsOf } from "./events.js";

/** An answer with an error status, or none at all (status 0). */
export class Failure extends Error {
  constructor(status, message, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Send a request and return the response of a success.
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>, keepalive?: boolean}} [options]
 */
async function send(method, path, { body, signal, headers = {}, keepalive = false } = {}) {
  const isForm = body instanceof FormData;
  const sent = { ...headers };
  if (body !== undefined && !isForm) sent["Content-Type"] = "application/json";
  if (key()) sent.Authorization = `Bearer ${key()}`;
  const response = await reached(path, { method, signal, keepalive, headers: sent, body: isForm || body === undefined ? body : JSON.stringify(body) });
  if (!response.ok) throw await failureOf(response);
  return response;
}

async function reached(path, options) {
  try {
    return await fetch(path, { ...options, cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Failure(0, `The server cannot be reached: ${error.message}`);
  }
}

async function failureOf(response) {
  let text = `${response.status} ${response.statusText}`;
  let code = "";
  try {
    const { error } = await response.json();
    text = error.message;
    code = error.code ?? "";
  } catch {
    // no JSON: the status has to do
  }
  if (response.status === 401) document.dispatchEvent(new CustomEvent("key-needed", { detail: text }));
  return new Failure(response.status, text, code);
}

/** Fill parts into a path: path`/v1/conversations/${name}` encodes the name. */
export function path(texts, ...values) {
  return String.raw({ raw: texts }, ...values.map((value) => encodeURIComponent(value)));
}

/** Get JSON. */
export async function get(where, options) {
  return (await send("GET", where, options)).json();
}

/** Get a text of some kind. */
export async function getText(where, accept) {
  return (await send("GET", where, { headers: { Accept: accept } })).text();
}

/** Post JSON or a form; returns the JSON that came back, null for none. */
export async function post(where, body, options) {
  return contentOf(await send("POST", where, { body, ...options }));
}

/** Delete something. */
export async function remove(where) {
  return contentOf(await send("DELETE", where));
}

async function contentOf(response) {
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/**
 * Read server-sent events, which EventSource cannot, since it sends no key.
 * @returns {AsyncGenerator<{event: string, data: string, id: string}>}
 */
export async function* stream(method, where, { body, signal, lastId = "" } = {}) {
  const headers = { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
  const response = await send(method, where, { body, signal, headers });
  if (response.status === 204) yield { event: "end", data: "null", id: lastId }; // there is nothing more to come
  else yield* eventsOf(response.body);
}
