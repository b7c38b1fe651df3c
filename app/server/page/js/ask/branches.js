// The branches of a conversation: which one is shown, under what name, and how many there are.

import { confirmed, prompted } from "../shell/dialog.js";
import { fill, iconButton, make } from "../shell/dom.js";
import { warn } from "../shell/notice.js";
import { say } from "../shell/words.js";

export class BranchMenu {
  /** @param {import("./conversation.js").Conversation} conversation */
  constructor(conversation) {
    this.conversation = conversation;
    this.element = make("div.branches");
  }

  /** Write the menu; a single branch needs none. */
  draw() {
    const { document: found, isRunning } = this.conversation;
    if (!found || found.branches.length < 2) return fill(this.element);
    const select = make("select", { "aria-label": say("branch.choose"), disabled: isRunning, on: { change: () => this.#try(() => this.conversation.switchTo(select.value)) } },
      ...found.branches.map((branch) => make("option", { value: branch.name, selected: branch.name === found.active_branch }, say("branch.option", { name: branch.name, n: branch.turns }))));
    const parts = [select, iconButton("edit", say("branch.rename"), () => this.#rename(found.active_branch), { disabled: isRunning })];
    parts.push(iconButton("bin", say("branch.delete"), () => this.#remove(found), { disabled: isRunning }));
    return fill(this.element, ...parts);
  }

  async #try(task) {
    try {
      await task();
    } catch (error) {
      warn(error);
    }
  }

  async #rename(name) {
    const wanted = await prompted(say("branch.rename"), { label: say("branch.newName"), value: name, action: say("branch.rename") });
    if (wanted && wanted !== name) await this.#try(() => this.conversation.rename(name, wanted));
  }

  async #remove({ active_branch: active, branches }) {
    if (!(await confirmed(say("branch.sure", { name: active }), say("delete")))) return;
    const other = branches.find((branch) => branch.name !== active);
    await this.#try(async () => {
      await this.conversation.switchTo(other.name);
      await this.conversation.removeBranch(active);
    });
  }
}
