"""Examples in the docstrings of public callables: prompts run (test_packaging.py), blocks name what exists."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap

import pytest

import judgetree
from judgetree import evaluation

PUBLIC = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in (judgetree, evaluation)
    for name in package.__all__
    if callable(value := getattr(package, name)) and not (inspect.isclass(value) and issubclass(value, Exception))
}
WITHOUT_EXAMPLE = {
    "judgetree.aextract_triples",
    "judgetree.ChatLLM",
    "judgetree.ChunkLinks",
    "judgetree.GraphReport",
    "judgetree.LinkedChunk",
    "judgetree.ModelCall",
    "judgetree.PrebuiltIndex",
    "judgetree.RagState",
    "judgetree.RerankModel",
    "judgetree.ShownGraph",
    "judgetree.RunContext",
    "judgetree.EndpointLLM",
    "judgetree.Expansion",
    "judgetree.IndexReport",
    "judgetree.RagResult",
    "judgetree.SearchLimits",
    "judgetree.SearchProgress",
    "judgetree.aask",
    "judgetree.evaluation.Comparison",
    "judgetree.evaluation.Submission",
    "judgetree.evaluation.QuestionPlan",
    "judgetree.evaluation.Dataset",
    "judgetree.evaluation.Judgement",
    "judgetree.evaluation.Judgements",
    "judgetree.evaluation.Metric",
    "judgetree.evaluation.Replay",
    "judgetree.evaluation.Report",
    "judgetree.evaluation.Rerun",
    "judgetree.evaluation.RunRow",
    "judgetree.evaluation.RunSummary",
    "judgetree.evaluation.ScoringSummary",
    "judgetree.evaluation.SweepReport",
    "judgetree.evaluation.TrainingData",
    "judgetree.evaluation.TreeStore",
}
"""What other calls give back, as their examples show, protocols and types, and twins."""
BLOCK = re.compile(r"^::\n\n((?:    .*\n|\n)+)", re.MULTILINE)
CALL_LIKE = re.compile(r"\w\(")


def blocks(value: object) -> list[str]:
    """The ``::`` blocks of a docstring that are code, not drawings."""
    found = [textwrap.dedent(block) for block in BLOCK.findall(f"{inspect.getdoc(value) or ''}\n")]
    return [block for block in found if CALL_LIKE.search(block)]


def has_example(value: object) -> bool:
    return ">>>" in (inspect.getdoc(value) or "") or bool(blocks(value))


def test_every_public_callable_has_an_example_but_those_listed() -> None:
    assert {name for name, value in PUBLIC.items() if not has_example(value)} == WITHOUT_EXAMPLE


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if blocks(value)])
def test_a_block_that_does_not_run_is_python_with_names_that_exist(name: str) -> None:
    given = {"Document", "context", "embedder", "fit", "index", "judge", "llm", "result", "retriever", "session"}
    given |= {"Path", "datasets", "evaluation", "settings"} | {path.rpartition(".")[2] for path in PUBLIC}
    for block in blocks(PUBLIC[name]):
        tree = ast.parse(_within(block))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        stored |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        loaded = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        assert loaded - stored - given - set(dir(builtins)) == set()


def _within(block: str) -> str:
    return "async def example():\n" + textwrap.indent(block, "    ")
