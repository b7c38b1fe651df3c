// The view "Collections": what is in them, uploads, and the search playground.

import { get, path } from "../net/api.js";
import { fill, icon, make } from "../shell/dom.js";
import { warn } from "../shell/notice.js";
import { address, settle } from "../shell/route.js";
import { number, say } from "../shell/words.js";
import { patternOf, marked } from "../text/marked.js";
import { Playground } from "./playground.js";
import { UploadBox } from "./upload.js";

const MOST_FILES = 1000;

export class CollectionsView {
  /** @param {{server: {takes_uploads: boolean}, name: string, query: URLSearchParams}} options */
  constructor({ server, name, query }) {
    this.server = server;
    this.name = name;
    this.query = query;
    this.element = make("div.view", null, make("div.sheet", null, make("p.faint", null, say("loading"))));
  }

  /** Read what is shown; search and uploads stay as they are. */
  async open() {
    const sheet = this.element.firstChild;
    const parts = this.name ? await this.#one() : await this.#all();
    const focused = document.activeElement;
    fill(sheet, ...parts);
    if (sheet.contains(focused)) focused.focus({ preventScroll: true });
  }

  /** Leave the view; uploads go on at the server. */
  close() {
    this.upload?.close();
  }

  async #all() {
    const { data, may_fill: mayFill } = await get("/v1/collections");
    const upload = this.#uploadBox();
    this.upload?.offer(data.map((each) => each.name), mayFill);
    const cards = data.map((each) => make("li.card", null,
      make("div.card-head", null, make("a", { href: address(["collections", each.name]) }, each.name), make("span.faint", null, sizes(each))),
      each.problem ? make("p.alarm", null, each.problem) : make("p.faint", null, [each.embedders.join(", "), each.analyzer].filter(Boolean).join(" · "))));
    return [make("div.sheet-head", null, make("h2", null, say("place.collections")), make("p.faint", null, say("collections.hint"))),
      cards.length ? make("ul.cards", null, ...cards) : make("p.faint", null, say(this.server.takes_uploads ? "collections.none" : "collections.noneHere")), upload].filter(Boolean);
  }

  #uploadBox() {
    if (!this.server.takes_uploads) return null;
    this.upload ??= new UploadBox({ name: this.name, onEnd: () => this.open().catch(warn) });
    return this.upload.element;
  }

  #playground() {
    if (this.playground) return this.playground;
    this.playground = new Playground({ name: this.name, query: this.query.get("query") ?? "", onSearch: (query) => settle(["collections", this.name], { query }) });
    this.playground.open().catch(warn);
    return this.playground;
  }

  async #one() {
    const found = await get(path`/v1/collections/${this.name}` + `?limit=${MOST_FILES}`);
    const upload = this.#uploadBox();
    const playground = this.#playground();
    return [
      make("div.sheet-head", null, make("a.back", { href: address(["collections"]) }, icon("left"), say("place.collections")), make("h2", null, found.name),
        make("p.faint", null, [sizes(found), found.embedders.join(", "), found.analyzer, found.chunk_size && say("collections.chunkSize", { n: found.chunk_size })].filter(Boolean).join(" · "))),
      found.problem && make("p.alarm", null, found.problem),
      playground.element,
      upload,
      fileList(found),
    ].filter(Boolean);
  }
}

function sizes({ files, chunks }) {
  return `${say("files", { n: files })} · ${say("chunks", { n: chunks })}`;
}

function fileList({ sources, files }) {
  const body = make("tbody");
  const write = (pattern) => {
    const shown = sources.filter((each) => !pattern || each.source.search(pattern) >= 0);
    fill(body, ...shown.map((each) => make("tr", null, make("td", null, ...marked(each.source, pattern)), make("td.number", null, number(each.chunks)))));
  };
  const term = make("input", { type: "search", placeholder: say("collections.find"), "aria-label": say("collections.find"), on: { input: () => write(patternOf(term.value)) } });
  write(null);
  const head = make("tr", null, make("th", { scope: "col" }, say("collections.file")), make("th.number", { scope: "col" }, say("collections.chunks")));
  return make("section", null, make("div.filters", null, make("h3", null, say("files", { n: files })), term),
    files > sources.length && make("p.faint", null, say("collections.cut", { n: sources.length })),
    make("div.wide.tall", { tabindex: "0", role: "group", "aria-label": say("collections.files") }, make("table.files", null, make("thead", null, head), body)));
}
