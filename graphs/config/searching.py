"""Keys of the order and the end of a search."""

from __future__ import annotations

from typing import Annotated

from ...modules.config.config import Config, Key, checked


def _check_policy(spec: str) -> None:
    from ..search.policies.registry import check_policy

    check_policy(spec)


def _check_stop(spec: str) -> None:
    from ..search.stop import create_stop

    create_stop(spec)


class Searching(Config):
    """Search"""

    policy: Annotated[
        str,
        checked(_check_policy),
        Key(needs="judge", common=True, per_question=True, is_part=True, metavar="NAME"),
    ] = "breadth"
    """Chooses the chunks that ask their sub-questions: breadth (all), best_first, value_cost, wider, mcts, random,
    treequest (an extra), with parameters such as mcts:c=1.4; or one of your own, as module:name."""
    stop: Annotated[str, checked(_check_stop), Key(needs="judge", metavar="NAME")] = "set"
    """Closes a query whose verdicts suffice: set (a chunk scores 2, or the judge says that the chunks suffice
    together), any (a chunk scores 2), confidence:p=0.9, or never."""
