"""Settings, from the environment (prefix ``JUDGETREE_``) and a ``.env`` file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from .errors import SettingsError

HOME_NAME = ".judgetree"
Durability = Literal["sync", "async", "exit"]


def find_home(start: Path | None = None) -> Path:
    """The ``.judgetree`` folder of the nearest parent that has one, else that of the current folder (not created)."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / HOME_NAME).is_dir():
            return folder / HOME_NAME
    return here / HOME_NAME


class Settings(BaseSettings):
    """What a run needs to know of its surroundings. Secrets never show in ``repr``, logs or JSON."""

    model_config = SettingsConfigDict(
        env_prefix="JUDGETREE_", env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True
    )

    llm: str = Field(
        default="", description="Model that answers: openai:MODEL, dashscope:MODEL, local: or URL#MODEL. Empty: by key."
    )
    llm_base_url: str = Field(default="", description="Address for openai:MODEL, when it is not OpenAI's own.")
    llm_api_key: SecretStr = Field(default=SecretStr(""), description="Key; else OPENAI_API_KEY or DASHSCOPE_API_KEY.")
    judge_llm: str = Field(default="", description="Model that judges; empty: the same as llm.")
    embeddings: str = Field(
        default="auto", description="auto (by the documents' language), local:minilm, local:use or a model as in llm."
    )
    milvus_uri: str = Field(default="", description="Folder of Milvus Lite or http address; empty: home/milvus.db.")
    milvus_token: SecretStr = Field(default=SecretStr(""), description="user:password or token of a Milvus server.")
    checkpoints: str = Field(
        default="", description="memory:, sqlite:///path or postgresql://…; empty: sqlite in home."
    )
    durability: Durability = Field(default="async", description="When checkpoints are written: sync, async or exit.")
    home: Path = Field(default_factory=find_home, description="Folder for models, vectors and checkpoints.")
    max_concurrency: int = Field(default=8, ge=1, description="Model calls at once, over all questions.")
    timeout_s: float = Field(default=120.0, gt=0, description="Seconds an attempt of a model call may take.")
    retries: int = Field(default=3, ge=0, description="Further attempts after a failed model call.")

    @property
    def milvus_address(self) -> str:
        """Where the collections live."""
        return self.milvus_uri or str(self.home / "milvus.db")

    @property
    def checkpoint_url(self) -> str:
        """Where the search trees live."""
        return self.checkpoints or f"sqlite:///{self.home / 'checkpoints.sqlite'}"

    @property
    def llm_spec(self) -> str:
        """The model that answers: the setting, else whichever key the environment holds, else the local one."""
        if self.llm:
            return self.llm
        if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
            return "openai:gpt-4o-mini"
        if os.environ.get("DASHSCOPE_API_KEY"):
            return "dashscope:qwen-plus"
        return "local:"

    @property
    def judge_spec(self) -> str:
        """The model that judges."""
        return self.judge_llm or self.llm_spec


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment and ``.env``; keyword arguments that are not None win.

    Raises:
        SettingsError: A value is not allowed; the message names the variable, the value's fault and what is allowed.
    """
    given = {key: value for key, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        faults = "; ".join(
            f"JUDGETREE_{'.'.join(str(part) for part in fault['loc']).upper()}: {fault['msg']} (got {fault['input']!r})"
            for fault in error.errors()
        )
        raise SettingsError(f"Settings are not usable: {faults}. Mend the environment variable or .env.") from error
