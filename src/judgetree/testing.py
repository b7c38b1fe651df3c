"""Checks of parts of one's own against what judgetree relies on, for tests.

::

    from judgetree.testing import check_judge

    def test_my_judge_keeps_the_contract():
        check_judge(LengthJudge())
"""

from .evaluation.contracts import check_dataset, check_metric
from .graphs.contracts import ContractError, check_chat_model, check_judge, check_retriever, check_system

__all__ = [
    "ContractError",
    "check_chat_model",
    "check_dataset",
    "check_judge",
    "check_metric",
    "check_retriever",
    "check_system",
]
