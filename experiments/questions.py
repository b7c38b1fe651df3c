"""The questions of the experiments: which part takes which, drawn once and kept in ``split.json``.

``python -m experiments.questions FOLDER`` draws the split from the files that ``FILES`` names. Parts are data sets of
their own, searched over the paragraphs of all questions of their sample: ``--dataset
experiments.questions:stage_a_hotpotqa:FOLDER``. FOLDER may hold any files of the same form, such as the official ones,
as long as one has all questions of a sample.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.metrics.clusters import clusters_of
from judgetree.evaluation.runs.jobs import draw
from judgetree.modules.digests import text_digest
from judgetree.modules.errors import LoadingError

SPLIT = Path(__file__).with_name("split.json")
SEED = 0
REPORTED_BEFORE = 150
"""First questions of ``hotpotqa_500`` on which a judge's figures were published, so that none of them is drawn."""

FILES = {
    "hotpotqa_train_100": "hotpotqa",
    "hotpotqa_500": "hotpotqa",
    "hotpotqa_fresh": "hotpotqa",
    "2wiki_200": "2wiki",
    "musique_train_100": "musique",
}
"""Format of each file."""


def pilot(path: Path) -> Dataset:
    """Ten training questions of HotpotQA: seconds, discordance and how many passages equal tokens are."""
    return part("pilot", path)


def tuning(path: Path) -> Dataset:
    """Sixty others, on which levers are screened."""
    return part("tuning", path)


def training(path: Path) -> Dataset:
    """The other thirty, for examples in prompts and for what is fitted."""
    return part("training", path)


def stage_a_hotpotqa(path: Path) -> Dataset:
    """The hundred questions of HotpotQA on which evidence is compared."""
    return part("stage_a_hotpotqa", path)


def stage_a_2wiki(path: Path) -> Dataset:
    """The hundred of 2WikiMultihopQA."""
    return part("stage_a_2wiki", path)


def stage_b_hotpotqa(path: Path) -> Dataset:
    """Forty of the hundred questions of HotpotQA, on which answers are compared."""
    return part("stage_b_hotpotqa", path)


def stage_b_2wiki(path: Path) -> Dataset:
    """Forty of the hundred of 2WikiMultihopQA."""
    return part("stage_b_2wiki", path)


def confirmation_hotpotqa(path: Path) -> Dataset:
    """All 171 questions of a file that nothing was chosen on."""
    return part("confirmation_hotpotqa", path)


def confirmation_2wiki(path: Path) -> Dataset:
    """The other hundred of 2WikiMultihopQA."""
    return part("confirmation_2wiki", path)


def musique_levers(path: Path) -> Dataset:
    """Half of a training file of MuSiQue, by clusters of questions that share a fact: for choosing."""
    return part("musique_levers", path)


def musique_reports(path: Path) -> Dataset:
    """The other half: for reports, which call it a training split."""
    return part("musique_reports", path)


def hotpotqa_500(path: Path) -> Dataset:
    """The whole sample of HotpotQA on which ideal parts are compared."""
    return _chosen("hotpotqa_500", "hotpotqa_500", read_split()["files"]["hotpotqa_500"], path)


def musique_train_100(path: Path) -> Dataset:
    """The whole sample of MuSiQue's training questions."""
    return _chosen("musique_train_100", "musique_train_100", read_split()["files"]["musique_train_100"], path)


def read_split() -> dict[str, Any]:
    """Read ``split.json``: the parts by name, with file and ids, and the ids of all questions of each file."""
    split: dict[str, Any] = json.loads(SPLIT.read_text(encoding="utf-8"))
    return split


def ids_of(name: str) -> list[str]:
    """Return the ids of a part's questions, in the order of the draw."""
    return list(read_split()["parts"][name]["ids"])


def part(name: str, folder: Path) -> Dataset:
    """Return a part's questions, in the order of the draw, over the paragraphs of all questions of its file.

    Raises:
        LoadingError: FOLDER lacks some of the questions.
    """
    return _chosen(name, read_split()["parts"][name]["file"], ids_of(name), folder)


def _chosen(name: str, file: str, ids: Sequence[str], folder: Path) -> Dataset:
    """Return some questions of a sample, in this order, over the paragraphs of all its questions."""
    whole = _with_ids(folder, FILES[file], read_split()["files"][file])
    by_id = {each.id: each for each in whole.questions}
    held = {key for each in whole.questions for key in (*each.supporting, *each.distractors)}
    return replace(
        whole,
        name=name,
        questions=tuple(by_id[each] for each in ids),
        documents=tuple(each for each in whole.documents if each.key in held),
    )


def _with_ids(folder: Path, form: str, ids: Sequence[str]) -> Dataset:
    """Return the questions of these ids, from the one file of this form that has all of them."""
    wanted, missing = set(ids), len(ids)
    for path in sorted((*folder.glob("*.json"), *folder.glob("*.jsonl"))):
        try:
            found = _loaded(f"{form}:{path}")
        except LoadingError:
            continue
        questions = tuple(each for each in found.questions if each.id in wanted)
        missing = min(missing, len(wanted) - len(questions))
        if not missing:
            return replace(found, questions=questions)
    raise LoadingError(
        f"No file of {folder} in the form of {form} has all {len(ids)} questions of the split; the best one lacks "
        f"{missing}. Put the official file there, or the one that the split was drawn from."
    )


@functools.cache
def _loaded(spec: str) -> Dataset:
    return load_dataset(spec)


# --- the draw ---


def draw_split(folder: Path) -> dict[str, object]:
    """Draw all parts; no question is in two of them, except that stage B takes some of stage A."""
    files = {file: _loaded(f"{form}:{folder / file}.json").questions for file, form in FILES.items()}
    train, wiki = files["hotpotqa_train_100"], files["2wiki_200"]
    first = draw(train, 10, seed=SEED)
    tuned = draw(_less(train, first), 60, seed=SEED)
    hotpotqa = draw(files["hotpotqa_500"][REPORTED_BEFORE:], 100, seed=SEED)
    two_wiki = draw(wiki, 100, seed=SEED)
    levers, reports = _halves(files["musique_train_100"])
    parts = {
        "pilot": ("hotpotqa_train_100", first),
        "tuning": ("hotpotqa_train_100", tuned),
        "training": ("hotpotqa_train_100", _less(train, [*first, *tuned])),
        "stage_a_hotpotqa": ("hotpotqa_500", hotpotqa),
        "stage_a_2wiki": ("2wiki_200", two_wiki),
        "stage_b_hotpotqa": ("hotpotqa_500", draw(hotpotqa, 40, seed=SEED)),
        "stage_b_2wiki": ("2wiki_200", draw(two_wiki, 40, seed=SEED)),
        "confirmation_hotpotqa": ("hotpotqa_fresh", files["hotpotqa_fresh"]),
        "confirmation_2wiki": ("2wiki_200", _less(wiki, two_wiki)),
        "musique_levers": ("musique_train_100", levers),
        "musique_reports": ("musique_train_100", reports),
    }
    return {
        "parts": {name: {"file": file, "ids": _shuffled(chosen)} for name, (file, chosen) in parts.items()},
        "files": {file: sorted(each.id for each in questions) for file, questions in files.items()},
    }


def _less(questions: Iterable[EvalQuestion], taken: Iterable[EvalQuestion]) -> list[EvalQuestion]:
    ids = {each.id for each in taken}
    return [each for each in questions if each.id not in ids]


def _shuffled(questions: Iterable[EvalQuestion]) -> list[str]:
    """Return ids in an order by chance, so that the first of them are a sample too."""
    return sorted((each.id for each in questions), key=lambda each: text_digest(str(SEED), "order", each))


def _halves(questions: Sequence[EvalQuestion]) -> tuple[list[EvalQuestion], list[EvalQuestion]]:
    """Part questions in two halves, those that share a fact together."""
    clusters = clusters_of({each.id: each.shares for each in questions})
    halves: tuple[list[EvalQuestion], list[EvalQuestion]] = ([], [])
    for cluster in sorted(set(clusters.values()), key=lambda each: text_digest(str(SEED), each)):
        min(halves, key=len).extend(each for each in questions if clusters[each.id] == cluster)
    return halves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    split = draw_split(parser.parse_args().folder)
    SPLIT.write_text(json.dumps(split, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
