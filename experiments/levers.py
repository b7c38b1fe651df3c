"""Two levers that call no model, on the tuning questions: a small ranker, and sub-questions about names without a link.

``python -m experiments.levers FOLDER`` writes ``levers.csv``, and the table of ``levers.md``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from langchain_core.documents import Document

from judgetree.evaluation.calibration.logistic import logistic_weights
from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.runs.services import open_corpus
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.embedding.embedder import Embedder, create_embeddings
from judgetree.modules.judge.fused import features_of
from judgetree.modules.judge.gold import keys_of
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings
from judgetree.modules.structure.titles import TitleFinder, names_of

from .pages import PAGES, fill, table
from .questions import pilot, training, tuning

CANDIDATES = 20
"""Passages that the ranker orders."""
FIRST = 3
"""Passages of a search, whose links and names count."""
PASSAGES = (3, 4, 5, 6, 8, 10)
NAMES = (1, 2, 4)
"""Most names of a passage that are asked about."""
OWN = ("similarity", "bm25", "rank", "margin")
LINKS = ("is_linked", "links")
RANKERS: Mapping[str, Sequence[str]] = {"ranker": OWN, "ranker with links": (*OWN, *LINKS)}
_NAME = re.compile(r"[A-Z][\w’'-]+(?:\s+(?:(?:of|the|de|and|von|van|da|di)\s+)?[A-Z][\w’'-]+)*")
_FIRST_WORDS = re.compile(r"(?:The|It|He|She|In|This|His|Her|They|As|At|On|An?|Its|After|Before|For|From|When|While)\b")


def title_finder(chunk: Document) -> TitleFinder:
    """Return what finds the title of a passage in texts, as the graph of links does."""
    return TitleFinder(names_of(str(chunk.metadata["title"])))


def has_any(finder: TitleFinder, text: str) -> bool:
    """Return whether a text has one of the names."""
    return next(finder.names_in(text), None) is not None


def features(question: str, hits: Sequence[Document], similarity: Sequence[float]) -> list[dict[str, float]]:
    """Return the features of each passage, by rank: those of the judge ``fused`` without a model, and links.

    A passage is linked if the text of another one of the first three has its title, and links if its text has theirs.
    """
    own = features_of(question, [each.page_content for each in hits], [None] * len(hits), similarity)
    for at, hit in enumerate(hits):
        others = [each for place, each in enumerate(hits[:FIRST]) if place != at]
        own[at]["is_linked"] = float(any(has_any(title_finder(hit), each.page_content) for each in others))
        own[at]["links"] = float(any(has_any(title_finder(each), hit.page_content) for each in others))
    return own


def unlinked_names(question: str, text: str, titles: TitleFinder) -> list[str]:
    """Return the names in a passage that the question does not have and in which is no title, in order.

    >>> titles = TitleFinder(["Ada", "Foo Town"])
    >>> unlinked_names("Where was she born?", "Ada was born in Foo Town. The Analytical Engine is hers.", titles)
    ['Analytical Engine']
    """
    found = [_FIRST_WORDS.sub("", name).strip() for name in _NAME.findall(text)]
    new = [each for each in found if each and each.casefold() not in question.casefold()]
    return list(dict.fromkeys(each for each in new if not has_any(titles, each)))


class Levers:
    """The searches of the tuning questions over the paragraphs of their sample."""

    def __init__(self, retriever: Retriever, embedder: Embedder, key_field: str, titles: TitleFinder) -> None:
        self._retriever, self._embedder = retriever, embedder
        self._key_field, self._titles = key_field, titles

    def search(self, query: str, topk: int) -> list[Document]:
        """Return the passages of a plain search."""
        found = self._retriever.model_copy(update={"topk": topk}).search(query, meter=CallMeter(node="levers"))
        return [chunk for chunk, _ in found]

    def is_complete(self, question: EvalQuestion, chunks: Sequence[Document]) -> bool:
        """Return whether passages have all documents that a question needs."""
        held = frozenset().union(*(keys_of(each.metadata, self._key_field) for each in chunks))
        return question.gold <= held

    def rated(self, question: str) -> tuple[list[Document], list[dict[str, float]]]:
        """Return the candidates of a question with their features."""
        hits = self.search(question, CANDIDATES)
        asked = np.asarray(self._embedder.embed_query(question))
        vectors = np.asarray(self._embedder.embed_documents([each.page_content for each in hits]))
        cosines = vectors @ asked / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked))
        return hits, features(question, hits, ((1 + cosines) / 2).tolist())

    def fit(self, questions: Sequence[EvalQuestion], names: Sequence[str]) -> np.ndarray:
        """Return the weights of a ranker: those of a logistic regression of gold on the features."""
        rows, is_gold = [], []
        for question in questions:
            hits, rated = self.rated(question.question)
            rows += [[each[name] for name in names] for each in rated]
            is_gold += [bool(keys_of(hit.metadata, self._key_field) & question.gold) for hit in hits]
        return logistic_weights(np.array(rows), np.array(is_gold))[0]

    def ranked(self, question: EvalQuestion, names: Sequence[str], weights: np.ndarray) -> list[Document]:
        """Return the candidates of a question, the best first."""
        hits, rated = self.rated(question.question)
        scores = np.array([[each[name] for name in names] for each in rated]) @ weights
        return [hits[at] for at in np.argsort(-scores, kind="stable")]

    def asked_by_name(self, question: EvalQuestion, most: int) -> tuple[list[Document], int]:
        """Return what a search and its sub-questions about names find, and how many were asked."""
        found = self.search(question.question, FIRST)
        asked = [
            f"{question.question} ({name})"
            for chunk in found
            for name in unlinked_names(question.question, chunk.page_content, self._titles)[:most]
        ]
        return [*found, *(hit for each in asked for hit in self.search(each, FIRST))], len(asked)

    def outcomes(
        self, fitted_on: Sequence[EvalQuestion], questions: Sequence[EvalQuestion]
    ) -> Iterator[dict[str, object]]:
        """Yield a row a question, lever and number of passages or names."""
        weights = {lever: self.fit(fitted_on, names) for lever, names in RANKERS.items()}
        for question in questions:
            orders = {"naive": self.search(question.question, CANDIDATES)} | {
                lever: self.ranked(question, names, weights[lever]) for lever, names in RANKERS.items()
            }
            for lever, order in orders.items():
                for most in PASSAGES:
                    complete = self.is_complete(question, order[:most])
                    yield {"id": question.id, "lever": lever, "most": most, "complete": complete, "asked": 0}
            for most in NAMES:
                found, asked = self.asked_by_name(question, most)
                complete = self.is_complete(question, found)
                yield {"id": question.id, "lever": "names", "most": most, "complete": complete, "asked": asked}


def screened(folder: Path, home: Path) -> pd.DataFrame:
    """Return the rows of all levers."""
    dataset, settings = tuning(folder), load_settings(home=home, embeddings="local:minilm")
    fitted_on = [*training(folder).questions, *pilot(folder).questions]
    with open_corpus(dataset, settings) as index:
        titles = TitleFinder(name for each in dataset.documents for name in names_of(each.title))
        retriever = Retriever(index, topk=CANDIDATES, search_type="hybrid")
        levers = Levers(retriever, create_embeddings("local:minilm", settings), dataset.key_field, titles)
        return pd.DataFrame(levers.outcomes(fitted_on, dataset.questions))


def levers_table(rows: pd.DataFrame) -> str:
    """Return a line a lever, by how many passages are read, and one for each number of names."""
    by_lever = {lever: rows[rows["lever"] == lever].groupby("most") for lever in ("naive", *RANKERS, "names")}
    lines = [
        [lever, *(f"{100 * by_lever[lever]['complete'].mean()[most]:.1f} %" for most in PASSAGES)]
        for lever in ("naive", *RANKERS)
    ]
    found, asked = (by_lever["names"][column].mean() for column in ("complete", "asked"))
    told = [f"{most} a passage: {100 * found[most]:.1f} %, {asked[most]:.1f} sub-questions" for most in NAMES]
    heads = ["order of the passages", *(f"{most} passages" for most in PASSAGES)]
    return f"{table(heads, lines)}\nSub-questions about names: {'; '.join(told)}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "judgetree-evidence")
    given = parser.parse_args()
    rows = screened(given.folder, given.work / "home")
    rows.to_csv(PAGES / "levers.csv", index=False, lineterminator="\n")
    fill(PAGES / "levers.md", {"table": levers_table(rows)})


if __name__ == "__main__":
    main()
