// What is asked, and how: collection, system, policy and limits. Choices outlive the tab.

import { openDialog } from "../shell/dialog.js";
import { icon, make } from "../shell/dom.js";
import { choices, choose } from "../shell/settings.js";
import { hasWords, say } from "../shell/words.js";

const WITHOUT_COLLECTION = "";
const OF_EVALUATION = "eval_"; // begins the names of collections that evaluation runs make

/** Limits of one question: their names in requests, whether they may be broken numbers, and their least values. */
const LIMITS = [
  ["topk", 1, 1],
  ["max_rec_depth", 1, 0],
  ["max_llm_calls", 1, 1],
  ["max_sub_runs", 1, 0],
  ["max_tree_tokens", 1, 1],
  ["max_tree_cost_usd", "any", 0.0001],
  ["max_tree_seconds", "any", 0.1],
];

export class Picker {
  /**
   * @param {{models: string[], policies: string[], judging: string[], limits: Record<string, number|null>,
   *   onChange: () => void}} options  Systems that judge, which have a policy; the server's limits, null for none.
   */
  constructor({ models, policies, judging, limits, onChange }) {
    this.most = limits;
    this.judging = judging;
    this.limits = LIMITS.filter(([name]) => name in limits);
    this.onChange = onChange;
    this.policies = policies;
    this.models = models.filter((id) => id !== "fast").map(partsOf);
    this.element = make("div.picker");
    this.#draw();
  }

  #draw() {
    const { collection, system } = this.model;
    const collections = [...new Set(this.models.map((model) => model.collection))];
    const systems = this.models.filter((model) => model.collection === collection).map((model) => model.system);
    this.element.replaceChildren(
      chooser(say("picker.collection"), collections, collection, (name) => name || say("picker.none"), (value) => this.#choose({ collection: value })),
      chooser(say("picker.system"), systems, system, systemWords, (value) => this.#choose({ system: value })),
      make("button.quiet.text", { type: "button", "aria-label": this.#limitWords(), on: { click: () => this.#openLimits() } }, icon("tune"), make("span", null, this.#limitWords())),
    );
  }

  #choose(changes) {
    choose(changes);
    this.#draw();
    this.onChange();
  }

  /** Choose a collection that a conversation has searched, if it is served. */
  follow(collection) {
    const isServed = this.models.some((model) => model.collection === collection);
    if (collection && isServed && collection !== this.model.collection) this.#choose({ collection });
  }

  /** The chosen model, or the first that there is, which is no evaluation's if it can be. */
  get model() {
    const { collection, system } = choices();
    const found = this.models.filter((model) => model.collection === collection);
    const usual = this.models.filter((model) => !model.collection.startsWith(OF_EVALUATION));
    const [first] = usual.length ? usual : this.models;
    const fallback = found.length ? found : this.models.filter((model) => model.collection === first.collection);
    return fallback.find((model) => model.system === system) ?? fallback[0] ?? { id: "", collection: WITHOUT_COLLECTION, system: "" };
  }

  /** What a request carries of the choices. */
  get options() {
    const { search, thinking, policy, limits = {} } = choices();
    const { topk, ...others } = limits;
    const rest = Object.fromEntries(Object.entries(others).filter(([name]) => this.limits.some(([known]) => known === name)));
    return {
      model: this.model.id,
      ...(topk && { topk }),
      ...(search && { search_type: search }),
      ...(thinking && { thinking: thinking === "yes" }),
      ...(policy && this.policies.includes(policy) && this.judging.includes(this.model.system) && { policy }),
      ...(Object.keys(rest).length && { limits: rest }),
    };
  }

  #limitWords() {
    const { search, thinking, policy, limits = {} } = choices();
    const given = [search, thinking, policy].filter(Boolean).length + Object.keys(limits).length;
    return given ? say("picker.limitsChosen", { n: given }) : say("picker.limits");
  }

  #openLimits() {
    const { search = "", thinking = "", policy = "", limits = {} } = choices();
    const names = { search, thinking, policy };
    const fields = this.limits.map(([name, step, min]) => [name, make("input", { type: "number", step, min, max: this.most[name], value: limits[name] ?? "", placeholder: this.#usual(name) })]);
    const selects = {
      search: ["hybrid", "dense", "sparse"],
      thinking: ["yes", "no"],
      ...(this.policies.length && { policy: this.policies }),
    };
    const chosen = Object.entries(selects).map(([name, values]) => [name, make("select", null,
      make("option", { value: "" }, say("picker.asServer")),
      ...values.map((value) => make("option", { value, selected: value === names[name] }, optionWords(name, value))))]);
    const labelled = ([name, field]) => make("label", null, make("span", null, say(`limit.${name}`)), field, hasWords(`limitHint.${name}`) && make("small", null, say(`limitHint.${name}`)));
    const form = make("form.limits", { on: { submit: (event) => this.#keep(event, fields, chosen, box) } },
      make("div.fields", null, ...chosen.map(labelled), ...fields.map(labelled)),
      make("div.actions", null,
        make("button", { type: "button", on: { click: () => this.#reset(box) } }, say("picker.reset")),
        make("button.primary", { type: "submit" }, say("picker.keep"))));
    const box = openDialog(say("picker.limits"), [make("p.faint", null, say("picker.limitsHint")), form]);
  }

  // The server's limit, which is what holds where the field is empty, and the most that may be given.
  #usual(name) {
    const most = this.most[name];
    return most === null ? say("picker.asServer") : say("picker.atMost", { most });
  }

  #keep(event, fields, chosen, box) {
    event.preventDefault();
    const limits = Object.fromEntries(fields.filter(([, field]) => field.value !== "").map(([name, field]) => [name, Number(field.value)]));
    this.#choose({ limits, ...Object.fromEntries(chosen.map(([name, field]) => [name, field.value || undefined])) });
    box.close();
  }

  #reset(box) {
    this.#choose({ limits: {}, search: undefined, thinking: undefined, policy: undefined });
    box.close();
  }
}

function partsOf(id) {
  const at = id.lastIndexOf("/");
  return { id, collection: at < 0 ? WITHOUT_COLLECTION : id.slice(0, at), system: id.slice(at + 1) };
}

function systemWords(system) {
  return hasWords(`system.${system}`) ? say(`system.${system}`) : system;
}

function optionWords(name, value) {
  return hasWords(`${name}.${value}`) ? say(`${name}.${value}`) : value;
}

function chooser(label, values, chosen, words, listener) {
  const select = make("select", { "aria-label": label, title: label, on: { change: () => listener(select.value) } },
    ...values.map((value) => make("option", { value, selected: value === chosen }, words(value))));
  return select;
}
