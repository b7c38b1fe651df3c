// Addresses within the page: #/c/NAME, #/runs/RUN, #/collections/NAME?query=… Each part is percent-encoded.

/**
 * The present address.
 * @returns {{parts: string[], query: URLSearchParams}}
 */
export function place() {
  const [path, query] = location.hash.slice(1).split("?", 2);
  return { parts: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query ?? "") };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of some parts: address(["c", "monday"]) is "#/c/monday". */
export function address(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const asked = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${asked}`;
}

/** Go to an address. */
export function go(parts, query) {
  location.hash = address(parts, query);
}

/** Change the address without a new view, so that a reload comes back to the same. */
export function settle(parts, query) {
  history.replaceState(null, "", address(parts, query));
}
