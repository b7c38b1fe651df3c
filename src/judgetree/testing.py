"""Checks of parts of one's own against what judgetree relies on, and a scripted model for tests and examples.

::

    from judgetree.testing import check_judge

    def test_my_judge_keeps_the_contract():
        check_judge(LengthJudge())

    def test_my_judge_finds_an_answer():
        with ScriptedServer("data/standards_qa.jsonl") as server:  # a model over HTTP that knows the answers
            settings = load_settings(llm=f"{server.base_url}#scripted")
"""

from .app.scripted.server import ScriptedServer
from .evaluation.contracts import check_dataset, check_metric
from .graphs.contract_rules import ContractError
from .graphs.contracts import check_chat_model, check_judge, check_retriever, check_system
from .graphs.policy_contract import check_policy

__all__ = [
    "ContractError",
    "ScriptedServer",
    "check_chat_model",
    "check_dataset",
    "check_judge",
    "check_metric",
    "check_policy",
    "check_retriever",
    "check_system",
]
