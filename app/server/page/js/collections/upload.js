// Uploads: files are sent, and indexed by the server in the background.

import { get, path, post } from "../net/api.js";
import { fill, icon, make } from "../shell/dom.js";
import { say } from "../shell/words.js";

const POLL_MS = 700;
const ENDED = new Set(["done", "failed", "cancelled"]);

export class UploadBox {
  /** @param {{name: string, onEnd: () => Promise<void>}} options  Without a name, the user gives that of a collection. */
  constructor({ name, onEnd }) {
    this.name = name;
    this.onEnd = onEnd;
    this.isClosed = false;
    this.running = 0;
    this.files = make("input.unseen", { type: "file", multiple: true, id: "upload-files", on: { change: () => this.#send([...this.files.files]) } });
    this.field = make("input", { type: "text", value: name, placeholder: say("upload.newName"), autocomplete: "off", list: "upload-names" });
    this.names = make("datalist", { id: "upload-names" });
    this.choice = make("label", null, make("span", null, say("upload.collection")), this.field, this.names);
    this.state = make("div.upload-state", { role: "status" });
    const drop = make("label.drop", { for: "upload-files", on: {
      dragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
      dragleave: () => drop.classList.remove("over"),
      drop: (event) => { event.preventDefault(); drop.classList.remove("over"); this.#send([...event.dataTransfer.files]); },
    } }, icon("upload"), make("span", null, say("upload.drop")));
    this.element = make("section.upload", null, make("h3", null, say("upload.title")),
      !name && this.choice, make("div.drop-holder", null, this.files, drop), make("p.faint", null, say("upload.hint")), this.state);
  }

  /**
   * Offer the collections that may be filled.
   * @param {string[]} existing
   * @param {string[]|null} mayFill  All that may be filled, existing or not; null for any, which may have a new name.
   */
  offer(existing, mayFill) {
    fill(this.names, ...existing.map((each) => make("option", { value: each })));
    if (mayFill === null || this.field.tagName === "SELECT") return;
    const select = make("select", null, ...mayFill.map((each) => make("option", { value: each }, each)));
    this.field.replaceWith(select);
    this.field = select;
    this.choice.append(make("small", null, say(mayFill.length ? "upload.named" : "upload.none")));
    this.files.disabled = !mayFill.length;
  }

  /** Stop asking how far an upload is. */
  close() {
    this.isClosed = true;
  }

  async #send(files) {
    this.files.value = ""; // the same files may be chosen again
    const name = this.name || this.field.value.trim();
    if (!files.length) return;
    if (!this.running) this.state.replaceChildren();
    const tell = this.#line(files.length > 1 ? say("files", { n: files.length }) : files[0].name);
    if (!name) {
      this.field.focus();
      tell(say("upload.needsName"), true);
      return;
    }
    const form = new FormData();
    for (const file of files) form.append("files", file, file.name);
    tell(say("upload.sending", { n: files.length }));
    this.running += 1;
    try {
      await this.#watch(await post(path`/v1/collections/${name}/documents`, form), tell);
    } catch (error) {
      tell(error.message, true);
    } finally {
      this.running -= 1;
    }
  }

  async #watch(job, tell) {
    let now = job;
    while (!ENDED.has(now.status) && !this.isClosed) {
      tell(now.total ? say("upload.indexingOf", { done: now.done, total: now.total }) : say("upload.indexing"));
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      now = await get(path`/v1/jobs/${now.id}`);
    }
    if (this.isClosed) return;
    await this.onEnd(); // of several files, some may be indexed although others cannot be read
    const leftOut = Object.entries(now.left_out).map(([source, kinds]) => `${source} (${Object.entries(kinds).map(([kind, count]) => `${kind}: ${count}`).join(", ")})`);
    if (now.status === "done") tell(say("upload.done") + (leftOut.length ? " " + say("upload.leftOut", { files: leftOut.join("; ") }) : ""));
    else tell(now.error || say("upload.failed"), true, !now.error);
  }

  // Several uploads may be on their way: each has a line of its own, the newest first. An error of a job names its files.
  #line(files) {
    const line = make("p");
    this.state.prepend(line);
    return (text, isError = false, isNamed = true) => {
      line.classList.toggle("alarm", isError);
      const words = isNamed ? `${files}: ${text}` : text;
      if (line.textContent !== words) line.textContent = words; // it is read out at each change
    };
  }
}
