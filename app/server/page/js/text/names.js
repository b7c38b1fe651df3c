// Names of passages: the title of the document first, its file second.

import { make } from "../shell/dom.js";

/** The title of a passage's document, or the place of its row in a table; "" if the name of its file says as much. */
export function titleOf({ source, title, row }) {
  const file = fileOf(source ?? "");
  const stem = file.replace(/(?<=.)\.[^.]*$/, "");
  const given = String(title ?? "").replace(/\s+/g, " ").trim();
  if (given && ![stem, source].includes(given)) return given;
  return stem && typeof row === "number" ? `${stem}, row ${row}` : "";
}

/** The short name of a passage; "" if nothing is known of it. */
export function nameOf(passage) {
  return titleOf(passage) || fileOf(passage.source ?? "");
}

/** The name of a passage with its file, for where there is room. */
export function fullNameOf(passage) {
  const title = titleOf(passage);
  return title && passage.source ? `${title} (${passage.source})` : title || passage.source || "";
}

/** The name and, fainter, the file where the name is not the file's. */
export function namedWithFile(passage) {
  const title = titleOf(passage);
  return [make("strong", { dir: "auto" }, title || passage.source), title && passage.source && make("small", { dir: "auto" }, passage.source)];
}

/** The last part of a path, which tells files apart where there is little room. */
export function fileOf(source) {
  return source.split(/[/\\]/).at(-1);
}
