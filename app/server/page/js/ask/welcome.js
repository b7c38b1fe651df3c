// What a new conversation shows: what happens here, a picture of what will grow, and an example question of the collection.

import { get, path } from "../net/api.js";
import { draw, fill, make } from "../shell/dom.js";
import { say } from "../shell/words.js";
import { MARKS } from "../tree/model.js";

const SIZE = { width: 116, height: 28 };
// Columns and rows of the picture: a question, its passages, a sub-question, its passage.
const BOXES = [["query", 0, 1], ["2", 1, 0], ["1", 1, 1], ["0", 1, 2], ["query", 2, 1], ["2", 3, 1]];
const LINES = [[0, 1], [0, 2], [0, 3], [2, 4], [4, 5]];

export class Welcome {
  /** @param {{picker: import("./picker.js").Picker, onExample: (question: string) => void}} options */
  constructor({ picker, onExample }) {
    this.picker = picker;
    this.onExample = onExample;
    this.example = make("p.example");
    this.element = make("div.welcome", null, make("p.big", null, say("ask.welcome")), make("p", null, say("ask.welcomeHint")), picture(), this.example);
    this.draw();
  }

  /** Offer a question of the collection that is chosen now; a collection without titles has none. */
  async draw() {
    const { collection } = this.picker.model;
    fill(this.example);
    if (!collection) return;
    const found = await get(path`/v1/collections/${collection}` + "?limit=1").catch(() => null); // asking tells what is wrong
    if (!found?.example_title || collection !== this.picker.model.collection) return;
    const question = say("ask.exampleQuestion", { title: found.example_title });
    fill(this.example, say("ask.example"), " ", make("button", { type: "button", dir: "auto", on: { click: () => this.onExample(question) } }, question));
  }
}

function picture() {
  const place = ([, column, row]) => [2 + column * 130, 4 + row * 40];
  const lines = LINES.map(([from, to]) => {
    const [[x, y], [toX, toY]] = [place(BOXES[from]), place(BOXES[to])];
    const [start, end] = [[x + SIZE.width, y + SIZE.height / 2], [toX, toY + SIZE.height / 2]];
    const middle = (start[0] + end[0]) / 2;
    return draw("path", { class: `edge ${BOXES[to][0] === "query" ? "query" : `verdict-${BOXES[to][0]}`}`, d: `M${start}C${middle},${start[1]} ${middle},${end[1]} ${end}` });
  });
  const boxes = BOXES.map((box, at) => {
    const [x, y] = place(box);
    const words = box[0] === "query" ? say(at ? "tree.subQuestion" : "tree.question") : `${MARKS[box[0]]} ${say(`source.as.${box[0]}`)}`;
    const text = draw("text", { x: SIZE.width / 2, y: SIZE.height / 2, "text-anchor": "middle", "dominant-baseline": "central" }, document.createTextNode(words));
    return draw("g", { class: `sketch verdict-${box[0]}`, transform: `translate(${x} ${y})` }, draw("rect", { ...SIZE, rx: 6 }), text);
  });
  return draw("svg", { viewBox: "0 0 510 116", class: "growing", role: "img", "aria-label": say("ask.picture") }, ...lines, ...boxes);
}
