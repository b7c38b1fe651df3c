from __future__ import annotations

import json
from dataclasses import replace

import pytest

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.fingerprint import digest_of, fingerprint_of, sub_thread_id
from judgetree.graphs.threads.mismatch import check_match
from judgetree.modules.errors import ThreadMismatch
from judgetree.modules.judge.oracle import OracleJudge
from judgetree.modules.llm.tuned import with_sampling
from tests.graphs.fakes import FakeLLM, TableRetriever

READER = FakeLLM(lambda messages: "")
SERVICES = RagContext(reader=READER, retriever=TableRetriever({}), judge=OracleJudge({}))
BASE = fingerprint_of(query="q", system="judge", services=SERVICES)


@pytest.mark.parametrize(
    "changed",
    [
        fingerprint_of(query="other", system="judge", services=SERVICES),
        fingerprint_of(query="q", system="naive", services=SERVICES),
        fingerprint_of(query="q", system="judge", services=SERVICES, repeat=1),
        fingerprint_of(query="q", system="judge", services=replace(SERVICES, limits=Limits(max_rec_depth=1))),
        fingerprint_of(query="q", system="judge", services=replace(SERVICES, limits=Limits(max_llm_calls=7))),
        fingerprint_of(query="q", system="judge", services=replace(SERVICES, limits=Limits(judge_leaves=False))),
        fingerprint_of(
            query="q", system="judge", services=replace(SERVICES, reader=with_sampling(READER, temperature=0.7))
        ),
        fingerprint_of(
            query="q", system="judge", services=replace(SERVICES, reader=with_sampling(READER, thinking=False))
        ),
        fingerprint_of(query="q", system="judge", services=replace(SERVICES, retriever=TableRetriever({"q": []}))),
        fingerprint_of(query="q", system="judge", services=replace(SERVICES, judge=OracleJudge({"q": []}))),
    ],
)
def test_everything_that_determines_a_run_changes_the_digest(changed: dict[str, str]) -> None:
    assert digest_of(changed) != digest_of(BASE)
    with pytest.raises(ThreadMismatch):
        check_match("t", BASE, changed)


def test_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest_of(dict(reversed(BASE.items()))) == digest_of(BASE)


def test_mismatch_names_each_difference_and_nothing_else() -> None:
    with pytest.raises(ThreadMismatch, match=r"\(a: 1 then, 2 now; b: none then, 3 now\)"):
        check_match("t", {"a": "1", "same": "x"}, {"a": "2", "same": "x", "b": "3"})


def test_a_graph_that_was_made_anew_is_named_with_what_to_do() -> None:
    then, now = ({"retriever.graph": json.dumps({"kind": "triples", "graph": digest})} for digest in ("0a", "0b"))
    said = r"\(retriever\.graph\.graph: 0a then, 0b now\).* The graph of the collection was made anew since then"
    with pytest.raises(ThreadMismatch, match=said):
        check_match("t", then, now)
    with pytest.raises(ThreadMismatch, match=r"now\)[^:]*another thread id\.$"):
        check_match("t", then, {})


def test_sub_threads_are_stable_and_differ_in_every_part() -> None:
    base = ("parent", "chunk", "question", "fingerprint")
    assert sub_thread_id(*base) == sub_thread_id(*base)
    varied = {sub_thread_id(*(*base[:i], part + "x", *base[i + 1 :])) for i, part in enumerate(base)}
    assert len(varied | {sub_thread_id(*base)}) == 5
    assert sub_thread_id("a", "b,c", "q", "f") != sub_thread_id("a,b", "c", "q", "f")
