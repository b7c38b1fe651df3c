// JSON Patch (RFC 6902): the operations that trees grow by.

/** Apply operations to a document, in place; returns the document, which an operation may replace as a whole. */
export function patched(document, operations) {
  for (const operation of operations) document = applied(document, operation);
  return document;
}

function applied(document, { op, path, from, value }) {
  const keys = keysOf(path);
  const given = op === "copy" || op === "move" ? structuredClone(found(document, keysOf(from))) : value;
  if (op === "move") document = removed(document, keysOf(from));
  if (op === "test") return document;
  if (op === "remove") return removed(document, keys);
  if (!keys.length) return given;
  const holder = found(document, keys.slice(0, -1));
  const last = keys.at(-1);
  if (Array.isArray(holder) && op !== "replace") holder.splice(last === "-" ? holder.length : Number(last), 0, given);
  else holder[last] = given;
  return document;
}

function removed(document, keys) {
  const holder = found(document, keys.slice(0, -1));
  if (Array.isArray(holder)) holder.splice(Number(keys.at(-1)), 1);
  else delete holder[keys.at(-1)];
  return document;
}

function found(document, keys) {
  return keys.reduce((holder, key) => holder[key], document);
}

function keysOf(pointer) {
  const keys = pointer.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (keys.some((key) => key === "__proto__")) throw new Error(`a path leads out of the document: ${pointer}`);
  return keys;
}
