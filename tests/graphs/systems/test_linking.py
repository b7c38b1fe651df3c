"""Links as an expansion: passages that useful chunks are linked with, judged for the same query."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from langchain_core.documents import Document

from judgetree import RagSession, Settings
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.drawing.dot import draw_dot
from judgetree.graphs.drawing.text import draw_text
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.fingerprint import fingerprint_of
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import CollectionError, SettingsError
from judgetree.modules.judge.contract import Score, SetVerdict, Verdict
from judgetree.modules.retriever.linked_chunks import LinkedChunk
from tests.graphs.bushy import ROOT, bushy_context, outline
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk, thread
from tests.graphs.killed_search import search

QUESTION, SUB = "Where was the director of Casablanca born?", "Where was Curtiz born?"
TABLE = {
    QUESTION: [chunk("film", "Directed by Curtiz."), chunk("noise", "nothing")],
    SUB: [chunk("man", "Born in Budapest.")],
}
REPO = Path(__file__).parents[3]


@dataclass
class TableLinks:
    """Links by a table of chunk ids."""

    table: Mapping[str, Sequence[str]]
    is_down: bool = False
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "table", "links": str(sorted(self.table.items()))}

    async def linked(self, chunk_ids: Sequence[str], *, without: Collection[str], most: int) -> list[LinkedChunk]:
        if self.is_down:
            raise CollectionError("the store is down")
        self.asked.append(tuple(chunk_ids))
        ways = [(each, start) for start in chunk_ids for each in self.table.get(start, ()) if each not in without]
        return [
            LinkedChunk(chunk=chunk(each, f"text of {each}"), linked_from=start, name=f"title of {each}")
            for each, start in dict(reversed(ways)).items()
        ][:most]


@dataclass
class TableJudge:
    """Scores by chunk id; a 1 asks where Curtiz was born. Each verdict is a call."""

    scores: Mapping[str, Score]
    judged: list[tuple[str, str, bool]] = field(default_factory=list)

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "table"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        meter.reserve()
        meter.record(kind="chat", model="judge", started=0.0)
        chunk_id = str(chunk.metadata["chunk_id"])
        self.judged.append((query, chunk_id, expand))
        score = self.scores.get(chunk_id, 0)
        return Verdict(status="judged", score=score, next_query=SUB if score == 1 and expand else "")


@dataclass
class TableSetJudge:
    """Scores a set by chunk id, which suffices with "man"; fails at its second call where it shall."""

    fails: bool = False
    sets: list[tuple[str, ...]] = field(default_factory=list)

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "sets"}

    def expected_calls(self, chunks: int) -> int:
        return 1

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        ids = tuple(str(each.metadata["chunk_id"]) for each in chunks)
        self.sets.append(ids)
        if self.fails and len(self.sets) > 1:
            raise ValueError("no reply")
        scores: list[Score] = [1 if each in ("film", "man") else 0 for each in ids]
        verdicts = tuple(Verdict(status="judged", score=score, next_query=SUB if score else "") for score in scores)
        return SetVerdict(verdicts=verdicts, suffices="man" in ids)


def context_of(
    expansion: str,
    links: Mapping[str, Sequence[str]],
    scores: Mapping[str, Score],
    **limits: int,
) -> RagContext:
    return RagContext(
        reader=FakeLLM(lambda messages: "Budapest"),
        retriever=TableRetriever(TABLE),
        judge=TableJudge(scores),
        links=TableLinks(links),
        limits=Limits(expansion=expansion, **limits),  # type: ignore[arg-type]
    )


def asked(context: RagContext) -> SearchTree:
    with build_judge_rag(context=context) as graph:
        graph.invoke(QUESTION, thread("t"))
        return SearchTree.from_history(graph, "t")


def judged_in(context: RagContext) -> list[str]:
    assert isinstance(context.judge, TableJudge)
    return [chunk_id for _, chunk_id, _ in context.judge.judged]


def test_a_linked_passage_is_judged_for_the_same_query_and_seen_by_the_reader() -> None:
    context = context_of("link", {"film": ["man"], "noise": ["other"]}, {"film": 1, "man": 1})
    tree = asked(context)
    assert isinstance(context.retriever, TableRetriever)
    assert context.retriever.queries == [QUESTION]
    assert context.judge.judged == [(QUESTION, each, False) for each in ("film", "noise", "man")]  # type: ignore[union-attr]
    [node] = tree.query_nodes()
    linked = next(each for each in node.chunks if each.chunk_id == "man")
    assert (linked.linked_from, linked.linked_by, linked.rank, linked.score) == ("film", "title of man", 2, 1)
    assert (linked.retrieval_score, linked.shown_place) == (None, 2)
    assert tree.usage["llm_calls"] == 4  # three verdicts and an answer
    assert "linked by “title of man”" in draw_text(tree.root)
    assert "c0 -> c2" in draw_dot(tree.root)
    assert SearchTree.from_json(tree.to_json()).to_json() == tree.to_json()


def test_without_links_nothing_of_them_is_asked_or_saved() -> None:
    context = context_of("sub_question", {"film": ["man"]}, {"film": 1, "man": 2})
    tree = asked(context)
    assert context.links.asked == []  # type: ignore[union-attr]
    assert not any("link" in key for each in tree.chunk_nodes() for key in each.metadata)
    bare = replace(context, links=None)
    assert fingerprint_of(query="q", system="judge", services=bare) == fingerprint_of(
        query="q", system="judge", services=context
    )


def test_both_asks_only_where_links_do_not_close_the_query() -> None:
    found = context_of("both", {"film": ["man"]}, {"film": 1, "man": 2})
    assert len(list(asked(found).query_nodes())) == 1
    missed = context_of("both", {"film": ["other"]}, {"film": 1, "man": 2})
    assert [node.query for node in asked(missed).query_nodes()] == [QUESTION, SUB]
    assert judged_in(missed) == ["film", "noise", "other", "man"]


def test_circles_end_and_no_passage_is_judged_twice() -> None:
    links = {"film": ["man", "noise", "film"], "man": ["film", "city"], "city": ["man", "far"]}
    scores: dict[str, Score] = {"film": 1, "man": 1, "city": 1, "far": 1}
    for hops, reached in ((1, ["man"]), (2, ["man", "city"]), (9, ["man", "city", "far"])):
        context = context_of(f"link:hops={hops}", links, scores)
        asked(context)
        assert judged_in(context) == ["film", "noise", *reached]


def test_so_many_neighbours_are_taken_in_and_no_more() -> None:
    context = context_of("link:neighbours=2", {"film": list("abcdef")}, {"film": 1})
    asked(context)
    assert len(judged_in(context)) == 4


def test_a_spent_budget_leaves_linked_passages_unjudged_and_answers() -> None:
    tree = asked(context_of("link", {"film": ["a", "b"]}, {"film": 1}, max_llm_calls=4))
    assert [each.verdict for each in tree.chunk_nodes()] == ["judged", "judged", "judged", "cancelled"]
    assert (tree.root.answer, tree.usage["llm_calls"]) == ("Budapest", 4)


def test_a_sub_run_has_the_calls_of_its_linked_passages_reserved() -> None:
    links = {"man": ["a", "b", "c"]}
    for calls, queries in ((8, 1), (9, 2)):  # 2 verdicts and an answer; 2 + 3 verdicts and an answer
        context = context_of("both", links, {"film": 1, "man": 1}, max_llm_calls=calls)
        assert len(list(asked(context).query_nodes())) == queries


def test_a_judge_of_sets_reads_the_useful_chunks_with_the_linked_ones() -> None:
    judge = TableSetJudge()
    tree = asked(replace(context_of("both", {"film": ["man"]}, {}), judge=judge))
    assert judge.sets == [("film", "noise"), ("film", "man")]
    assert [(each.chunk_id, each.score) for each in tree.chunk_nodes()] == [("film", 1), ("noise", 0), ("man", 1)]


def test_a_judge_of_sets_that_fails_at_the_links_leaves_the_first_verdicts() -> None:
    judge = TableSetJudge(fails=True)
    tree = asked(replace(context_of("link", {"film": ["man"]}, {}), judge=judge))
    assert [(each.chunk_id, each.verdict_label) for each in tree.chunk_nodes()] == [
        ("film", "1"), ("noise", "0"), ("man", "unknown"),
    ]  # fmt: skip


def test_a_question_whose_links_failed_is_resumed_without_a_second_verdict() -> None:
    context = context_of("link", {"film": ["man"]}, {"film": 1, "man": 1})
    links = context.links
    assert isinstance(links, TableLinks)
    with build_judge_rag(context=context) as graph:
        links.is_down = True
        with pytest.raises(CollectionError, match="down"):
            graph.invoke(QUESTION, thread("t"))
        links.is_down = False
        graph.invoke(None, thread("t"))
        assert judged_in(context) == ["film", "noise", "man"]
        assert context.retriever.queries == [QUESTION]  # type: ignore[union-attr]


def test_a_context_without_links_is_refused() -> None:
    with pytest.raises(SettingsError, match="judgetree index --graph links"):
        replace(context_of("link", {}, {}), links=None)
    for spec in ("links", "link:hops=0", "both:most=3"):
        with pytest.raises(SettingsError):
            Limits(expansion=spec)


def test_two_graphs_of_links_have_two_fingerprints() -> None:
    found = [
        fingerprint_of(query="q", system="judge", services=context_of(rule, table, {}))
        for rule, table in (("link", {"a": ["b"]}), ("link", {"a": ["c"]}), ("both", {"a": ["b"]}))
    ]
    assert len({str(each) for each in found}) == 3


@pytest.mark.parametrize("policy", ["breadth", "best_first", "mcts:tries=2"])
@pytest.mark.parametrize("calls", [25, 70])
def test_trees_with_links_depend_on_verdicts_and_not_on_timing(policy: str, calls: int) -> None:
    for width in (None, 2):
        outlines = []
        for timing in range(3):
            limits = {"max_rec_depth": 2, "max_llm_calls": calls, "width": width, "expansion": "both:hops=2"}
            with build_judge_rag(context=bushy_context(policy, timing=timing, seed=1, **limits)) as graph:  # type: ignore[arg-type]
                graph.invoke(ROOT, thread("t"))
                outlines.append(outline(SearchTree.from_history(graph, "t")))
        assert outlines[0] == outlines[1] == outlines[2]
        assert any(">" in each.split(" > ")[-1] for each in outlines[0])


@pytest.mark.slow
def test_a_killed_search_with_links_ends_as_the_unbroken_one(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    unbroken = search(f"sqlite:///{tmp_path / 'w.sqlite'}", "best_first", 2, whole, expansion="both")
    url = f"sqlite:///{tmp_path / 'p.sqlite'}"
    made = whole.read_text().count("called")
    for last in (3, 7, made // 2):
        command = [sys.executable, "-m", "tests.graphs.killed_search", url, "best_first", "2", str(parts), "both"]
        assert subprocess.run([*command, str(last)], cwd=REPO, capture_output=True, check=False).returncode == 9
    assert search(url, "best_first", 2, parts, expansion="both") == unbroken
    assert parts.read_text().count("called") - made <= 3 * 2 * 4


def test_a_fork_keeps_linked_passages_and_follows_no_links_anew(tmp_path: Path) -> None:
    context = context_of("link", {"film": ["man", "city"]}, {"film": 1, "man": 1, "city": 1})
    with RagSession(context=context, settings=Settings(home=tmp_path)) as session:
        session.ask(QUESTION, thread_id="origin")
        fork = session.fork("origin", "1#3", drop=True)
        kept = [each.chunk_id for each in fork.tree.chunk_nodes() if each.score]
        assert kept == ["film", "man"], "the first linked one was dropped"
        assert fork.usage_this_run["llm_calls"] == 1
        with pytest.raises(SettingsError, match="topk cannot be changed"):
            session.fork("origin", "1", topk=1)
        with pytest.raises(SettingsError, match="no chunk asks on there"):
            session.fork("origin", "1#1", next_query="Where?")


def test_a_saved_linked_chunk_that_is_kept_for_a_later_question_is_no_longer_linked(tmp_path: Path) -> None:
    context = context_of("link", {"film": ["man"], "man": ["city"]}, {"film": 1, "man": 1})
    tree = asked(context)
    kept = [Document(page_content=each.text, metadata=dict(each.metadata)) for each in tree.chunk_nodes()]
    with build_judge_rag(context=context) as graph:
        graph.invoke({"query": SUB, "kept_chunks": kept}, thread("next"))
        later = SearchTree.from_history(graph, "next")
    found = {each.chunk_id: each.linked_from for each in later.chunk_nodes()}
    assert found == {"man": "", "film": "", "noise": "", "city": "man"}
