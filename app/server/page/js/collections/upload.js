// Uploads: files are sent, and indexed by the server in the background.

import { get, path, post } from "../net/api.js";
import { fill, icon, make } from "../shell/dom.js";
import { say } from "../shell/words.js";

const POLL_MS = 700;
const ENDED = new Set(["done", "failed", "cancelled"]);

export class UploadBox {
  /** @param {{name: string, onDone: () => void}} options  Without a name, the user gives that of a new collection. */
  constructor({ name, onDone }) {
    this.name = name;
    this.onDone = onDone;
    this.isClosed = false;
    this.files = make("input.unseen", { type: "file", multiple: true, id: "upload-files", on: { change: () => this.#send([...this.files.files]) } });
    this.field = make("input", { type: "text", value: name, placeholder: say("upload.newName"), autocomplete: "off" });
    this.state = make("div.upload-state", { role: "status" });
    const drop = make("label.drop", { for: "upload-files", on: {
      dragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
      dragleave: () => drop.classList.remove("over"),
      drop: (event) => { event.preventDefault(); drop.classList.remove("over"); this.#send([...event.dataTransfer.files]); },
    } }, icon("upload"), make("span", null, say("upload.drop")));
    this.element = make("section.upload", null, make("h3", null, say("upload.title")),
      !name && make("label", null, make("span", null, say("upload.collection")), this.field), make("div.drop-holder", null, this.files, drop), make("p.faint", null, say("upload.hint")), this.state);
  }

  /** Stop asking how far an upload is. */
  close() {
    this.isClosed = true;
  }

  async #send(files) {
    const name = this.name || this.field.value.trim();
    if (!files.length) return;
    if (!name) {
      this.field.focus();
      this.#tell(say("upload.needsName"), true);
      return;
    }
    const form = new FormData();
    for (const file of files) form.append("files", file, file.name);
    this.#tell(say("upload.sending", { n: files.length }));
    try {
      const job = await post(path`/v1/collections/${name}/documents`, form);
      await this.#watch(job);
    } catch (error) {
      this.#tell(error.message, true);
    }
    this.files.value = "";
  }

  async #watch(job) {
    let now = job;
    while (!ENDED.has(now.status) && !this.isClosed) {
      this.#tell(now.total ? say("upload.indexingOf", { done: now.done, total: now.total }) : say("upload.indexing"));
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      now = await get(path`/v1/jobs/${now.id}`);
    }
    if (this.isClosed) return;
    if (now.status === "done") {
      this.#tell(say("upload.done"));
      this.onDone();
    } else this.#tell(now.error || say("upload.failed"), true);
  }

  #tell(text, isError = false) {
    fill(this.state, make(isError ? "p.alarm" : "p", null, text));
  }
}
