"""``RagConfig``: everything that decides an answer, besides question, collection and system."""

from __future__ import annotations

from ...modules.config.judging import Judging
from ...modules.config.models import Models
from ...modules.config.reading import Reading
from ...modules.config.retrieval import Retrieval
from .limits import Limits
from .searching import Searching


class RagConfig(Reading, Limits, Searching, Judging, Retrieval, Models):  # pydantic puts the last base's fields first
    """Everything that decides an answer, besides question, collection and system.

    >>> RagConfig(topk=5).given
    {'topk': 5}
    """


USUAL = RagConfig()
"""The defaults."""
