"""Checks of parts of one's own against what judgetree relies on, for tests.

::

    from judgetree.testing import check_judge

    def test_my_judge_keeps_the_contract():
        check_judge(LengthJudge())
"""

from .graphs.contracts import ContractError, check_chat_model, check_judge, check_retriever, check_system

__all__ = ["ContractError", "check_chat_model", "check_judge", "check_retriever", "check_system"]
