// The words of the interface, in the language that the user chose, else that of the browser.

import en from "../../words/en.js";
import zh from "../../words/zh.js";

const LANGUAGES = { en, zh };
let chosen = "en";

/** Choose the language; "" takes that of the browser. */
export function chooseLanguage(wanted) {
  const given = wanted || navigator.language.slice(0, 2);
  chosen = given in LANGUAGES ? given : "en";
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
}

/** The language that is shown: "en" or "zh". */
export function language() {
  return chosen;
}

/**
 * Say something in the chosen language. A text with a singular is chosen by "n".
 * @param {string} key
 * @param {Record<string, string|number>} [values]
 */
export function say(key, values = {}) {
  const found = LANGUAGES[chosen][key];
  if (found === undefined) throw new Error(`no words for ${key}`);
  const text = Array.isArray(found) ? found[values.n === 1 ? 0 : 1] : found;
  return text.replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

/** Whether there are words under a key. */
export function hasWords(key) {
  return key in LANGUAGES[chosen];
}

function shown(value) {
  return typeof value === "number" ? number(value) : String(value);
}

/** Write a number with the separators of the language. */
export function number(value, digits = 0) {
  return new Intl.NumberFormat(chosen, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(value);
}

/** Write a duration in seconds. */
export function seconds(value) {
  return `${number(value, value < 10 ? 1 : 0)}\u00a0s`;
}

/** Write a time as people say it: how long ago, or the day. */
export function timeAgo(iso) {
  const then = new Date(iso);
  const minutes = Math.round((then - Date.now()) / 60000);
  const format = new Intl.RelativeTimeFormat(chosen, { numeric: "auto" });
  if (Number.isNaN(minutes)) return "";
  if (minutes > -60) return format.format(Math.min(minutes, 0), "minute");
  if (minutes > -24 * 60) return format.format(Math.round(minutes / 60), "hour");
  return new Intl.DateTimeFormat(chosen, { dateStyle: "medium" }).format(then);
}
