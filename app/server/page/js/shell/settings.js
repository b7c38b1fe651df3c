// What the user chose: language, colours, key, and what to ask. The key lives as long as the tab, the rest stays.

const KEY = "judgetree.key";
const CHOICES = "judgetree.choices";

/** The key that requests carry; "" for none. */
export function key() {
  return sessionStorage.getItem(KEY) ?? "";
}

/** Keep a key for this tab. */
export function setKey(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

/** All choices. */
export function choices() {
  try {
    return JSON.parse(localStorage.getItem(CHOICES) ?? "{}");
  } catch {
    return {};
  }
}

/** Change some choices; undefined takes one back. */
export function choose(changes) {
  localStorage.setItem(CHOICES, JSON.stringify({ ...choices(), ...changes }));
}

/** Show the chosen colours: "light", "dark", or "" for those of the system. */
export function showColours() {
  const { colours } = choices();
  if (colours) document.documentElement.dataset.colours = colours;
  else delete document.documentElement.dataset.colours;
}
