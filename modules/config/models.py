"""Keys of the models; those that are left out are as in the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_serializer

from ..addresses import Address
from ..calls.prompts import Prompts
from .config import Config, Key, after, whole

if TYPE_CHECKING:
    from ..settings import Settings

CacheMode = Literal["off", "read", "write", "refresh", "replay"]
"""``off`` makes every call, ``read`` saves nothing new, ``write`` saves the calls it makes, ``refresh`` saves them in
place of those saved before the run, ``replay`` makes no calls."""


class Models(Config):
    """Models"""

    llm: Annotated[
        Address | None,
        Key(common=True, per_question=True, is_part=True, is_model=True, path_in=after("local:"), metavar="MODEL"),
    ] = None
    """Model that answers, as in JUDGETREE_LLM: openai:NAME, dashscope:NAME, URL#NAME, local:, or module:name."""
    judge_llm: Annotated[
        Address | None,
        Key(needs=("judge", "insert_block"), is_part=True, is_model=True, path_in=after("local:"), metavar="MODEL"),
    ] = None
    """Model that judges, as in JUDGETREE_JUDGE_LLM; else the one that answers."""
    temperature: Annotated[
        float | None,
        Field(ge=0, le=2, allow_inf_nan=False),
        Key(per_question=True, is_model=True, metavar="T"),
    ] = None
    """Temperature of the model that answers, as in JUDGETREE_TEMPERATURE; above 0, repeats differ."""
    thinking: Annotated[bool | None, Key(per_question=True, in_requests=True, is_model=True)] = None
    """Whether the model that answers thinks first, as in JUDGETREE_THINKING; default: what its endpoint does."""
    prompts: Annotated[Prompts | None, Key(is_model=True, path_in=whole, metavar="FILE")] = None
    """Prompts of your own: a YAML file that judgetree prompts copy wrote, or its keys in place; else as in
    JUDGETREE_PROMPTS."""

    def applied_to(self, settings: Settings) -> Settings:
        """Return the settings with these models and their tuning; prompts stay apart."""
        return settings.with_models(
            llm=self.llm, judge_llm=self.judge_llm, temperature=self.temperature, thinking=self.thinking
        )

    @field_serializer("prompts")
    def _serialize_prompts(self, prompts: Prompts | None) -> dict[str, dict[str, object]] | None:
        return None if prompts is None else prompts.to_document()

    @field_serializer("llm", "judge_llm")
    def _serialize_model(self, spec: str | None) -> str | None:
        from ..settings import without_secrets

        return None if spec is None else without_secrets(spec)
