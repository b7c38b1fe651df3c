// Labels of one annotator: one passage at a time; a key or a button saves its score at once.
// Texts reach the page as text nodes only. Verdict and gold of a passage come with the answer to its label.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const places = new Map(data.passages.map((passage, place) => [passage.id, place]));
const shades = { 2: "verdict-2", 1: "verdict-1", 0: "verdict-0", "?": "verdict-unknown" };
let place = 0; // of the passage on the page; the number of passages once all are labelled
let shownAt = 0;
let isSaving = false;

function show(next) {
  place = Math.max(0, Math.min(next, data.passages.length));
  const passage = data.passages[place];
  at("passage").hidden = !passage;
  at("done").hidden = Boolean(passage);
  at("back").disabled = place === 0;
  at("next").disabled = !passage;
  at("due").disabled = data.due.length === 0;
  shownAt = performance.now();
  count();
  if (!passage) return;
  at("question").hidden = !passage.question;
  at("question").textContent = `Supplementary to: ${passage.question}`;
  at("query").textContent = passage.query;
  at("source").textContent = passage.source;
  at("text").textContent = passage.text;
  at("text").scrollTop = 0;
  at("note").value = passage.label ? passage.label.note : "";
  at("reveal").hidden = !passage.label;
  at("reveal").textContent = passage.label ? `You said ${passage.label.key}; ${passage.label.reveal}.` : "";
  for (const button of at("scores").children) {
    button.setAttribute("aria-pressed", String(Boolean(passage.label) && passage.label.key === button.dataset.key));
  }
  if (document.activeElement !== at("note")) document.activeElement.blur();
}

function count() {
  const labelled = data.passages.filter((passage) => passage.label).length;
  const total = labelled + data.due.length;
  at("count").textContent = `${labelled} labelled, ${data.due.length} left`;
  at("progress").max = Math.max(total, 1);
  at("progress").value = labelled;
}

function firstDue(from) {
  const due = data.due.map((id) => places.get(id)).sort((one, two) => one - two);
  return due.find((each) => each >= from) ?? due[0] ?? data.passages.length;
}

function alarm(text) {
  at("alarm").hidden = !text;
  at("alarm").textContent = text;
}

async function save(key) {
  const passage = data.passages[place];
  if (!passage || isSaving) return;
  isSaving = true;
  const given = {
    passage: passage.id,
    score: key === "?" ? null : Number(key),
    note: at("note").value.trim(),
    seconds: Math.round((performance.now() - shownAt) / 100) / 10,
  };
  try {
    const reply = await fetch("label", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given),
    });
    const saved = await reply.json();
    if (!reply.ok) throw new Error(saved.error);
    const wasLabelled = Boolean(passage.label);
    passage.label = saved.label;
    data.due = saved.due;
    alarm("");
    at("last").textContent = `Saved ${saved.label.key} for “${passage.query}”: ${saved.label.reveal}.`;
    show(wasLabelled ? place : firstDue(place));
  } catch (error) {
    const gone = error instanceof TypeError;
    alarm(gone ? "Not saved: the command has ended. Start it again, and open its new address." : `Not saved: ${error.message}`);
  } finally {
    isSaving = false;
  }
}

const moves = {
  ArrowLeft: () => show(place - 1),
  ArrowRight: () => show(place + 1),
  u: () => show(firstDue(0)),
  n: () => at("note").focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target === at("note")) {
    if (event.key === "Enter" || event.key === "Escape") at("note").blur();
    return;
  }
  const isScore = data.scores.some(([key]) => key === event.key);
  if (!isScore && !moves[event.key]) return;
  event.preventDefault();
  if (isScore) save(event.key);
  else moves[event.key]();
});

for (const [key, words] of data.scores) {
  const button = make("button", shades[key], make("kbd", "", key), make("span", "", words));
  button.type = "button";
  button.dataset.key = key;
  button.addEventListener("click", () => save(key));
  at("scores").append(button);
}
at("back").addEventListener("click", moves.ArrowLeft);
at("next").addEventListener("click", moves.ArrowRight);
at("due").addEventListener("click", moves.u);
show(firstDue(0));
