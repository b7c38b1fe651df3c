"""Keys of the judge."""

from __future__ import annotations

from typing import Annotated

from .config import Config, Key


class Judging(Config):
    """Judge"""

    judge: Annotated[str, Key(needs=("judge",), common=True, is_part=True, metavar="NAME")] = "auto"
    """Scores the chunks: auto, generated, batched, logprob, embedding, cascade, fused, noisy (runs only), with
    parameters such as cascade:judge=batched; or one of your own, as module:name."""
