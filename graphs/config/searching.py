"""Keys of the order and the end of a search."""

from __future__ import annotations

from typing import Annotated

from pydantic import field_validator

from ...modules.config.config import Config, Key, as_fault


class Searching(Config):
    """Search"""

    policy: Annotated[
        str,
        Key(needs=("sub_questions",), common=True, per_question=True, in_requests=True, is_part=True, metavar="NAME"),
    ] = "breadth"
    """Chooses the chunks that ask their sub-questions: breadth (all), best_first, value_cost, wider, again, mcts,
    random, treequest (an extra), with parameters such as mcts:c=1.4; or one of your own, as module:name."""
    stop: Annotated[str, Key(needs=("judge",), metavar="NAME")] = "set"
    """Closes a query whose verdicts suffice: set (a chunk scores 2, or the judge says that the chunks suffice
    together), any (a chunk scores 2), confidence:p=0.9, or never."""

    @field_validator("policy")
    @classmethod
    def _check_policy(cls, spec: str) -> str:
        from ..search.policies.registry import check_policy

        with as_fault():
            check_policy(spec)
        return spec

    @field_validator("stop")
    @classmethod
    def _check_stop(cls, spec: str) -> str:
        from ..search.stop import create_stop

        with as_fault():
            create_stop(spec)
        return spec
