"""A question that takes two searches: the chunk that the first one finds asks the second."""

from __future__ import annotations

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.judge.oracle import GoldFact, OracleJudge
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk

ROOT, SUB = "Which oil does KS-1 need?", "Which oil does class Delta need?"
TABLE = {ROOT: [chunk("a", "KS-1 is class Delta.")], SUB: [chunk("b", "Delta needs Vellin.")]}
FACTS = [
    GoldFact(quote="KS-1 is class Delta", question="What class is KS-1?", remaining_question=SUB),
    GoldFact(quote="Delta needs Vellin", question=SUB),
]
GOLD = {ROOT: FACTS, SUB: FACTS[1:]}


def context_of(reader: FakeLLM, *, depth: int = 3) -> RagContext:
    """A context of the judge graph, whose judge knows the facts."""
    limits = Limits(max_rec_depth=depth)
    return RagContext(reader=reader, retriever=TableRetriever(TABLE), judge=OracleJudge(GOLD), limits=limits)
