"""Settings, from the environment (prefix ``JUDGETREE_``) and a ``.env`` file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError, field_serializer, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from .addresses import Address
from .errors import SettingsError
from .recorded_texts import Record
from .trust.imports import guard_imports
from .trust.naming import INERT
from .trust.owners import why_foreign
from .trust.private import HOME_NAME
from .trust.usable import NotTrusted, env_file_here, usable_variables
from .trust.variables import warn_of_unknown

guard_imports()

Durability = Literal["sync", "async", "exit"]
SearchSnapshot = Literal["auto", "off"]
_SWITCH = {"": None, "on": True, "off": False, "true": True, "false": False, "1": True, "0": False}
Threshold = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

_PREFIX = "JUDGETREE_"
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_KEY_IN_QUERY = re.compile(
    r"(?<=[?&])(?=[\w-]*+=[^&#\s'\"])([\w-]*?(?:key|token|secret|passw|pwd)[\w-]*+)=[^&#\s'\"]++", re.IGNORECASE
)
_KEY = re.compile(r"\bsk-[\w-]{8,}")
_LONGEST_ECHO = 20
"""Longest wrong value that a message repeats: a key pasted into the wrong variable is longer."""
MAX_REPLY_BYTES = 200_000
"""Default limit of text and thinking of a reply: about 50,000 tokens."""


def find_home(start: Path | None = None) -> Path:
    """Return the nearest ``.judgetree`` folder above, else the one to create in the current folder.

    Raises:
        SettingsError: The nearest one belongs to another user, or anybody may write to it.
    """
    here = (start or Path.cwd()).resolve()
    home = next((each / HOME_NAME for each in (here, *here.parents) if (each / HOME_NAME).is_dir()), here / HOME_NAME)
    if why := why_foreign(home):
        raise SettingsError(
            f"The home folder {home} is not used: {why}. If you trust it, name it in the environment: JUDGETREE_HOME="
            f"{home}. Or name another one, or make this one yours (chown, chmod o-w)."
        )
    return home


def without_secrets(text: str) -> str:
    """Star out users and keys in the addresses of a text, and whatever looks like a key (``sk-…``).

    >>> without_secrets("postgresql://ada:secret@localhost/trees answers 500")
    'postgresql://***@localhost/trees answers 500'
    """
    return _KEY.sub("sk-***", _KEY_IN_QUERY.sub(r"\1=***", _USER.sub("***@", text)))


class Settings(BaseSettings):
    """The settings of a run: models, stores, limits and folders.

    Secrets do not show in ``repr``, logs or JSON: keys are ``SecretStr``, and the text of an ``Address`` has no user,
    password and query string.

    >>> settings = Settings(llm="openai:gpt-4o-mini", llm_api_key="sk-secret")
    >>> settings.llm_api_key
    SecretStr('**********')
    >>> settings.with_models(temperature=0.5).temperature
    0.5
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    llm: Address = Field(
        default=Address(),
        description="Model that answers: openai:MODEL, dashscope:MODEL, local: or URL#MODEL, with completion: before "
        "it if it completes texts. Empty: by key.",
    )
    llm_base_url: Address = Field(
        default=Address(), description="Address for openai:MODEL or dashscope:MODEL, when not their own."
    )
    llm_api_key: SecretStr = Field(default=SecretStr(""), description="Key; else OPENAI_API_KEY or DASHSCOPE_API_KEY.")
    rerank_api_key: SecretStr = Field(default=SecretStr(""), description="Key of a rerank endpoint named by URL#MODEL.")
    judge_llm: Address = Field(default=Address(), description="Model that judges; empty: the same as llm.")
    prompts: Path | None = Field(
        default=None, description="YAML file of your own prompts (judgetree prompts copy); empty: judgetree's."
    )
    condense_llm: Address = Field(
        default=Address(), description="Model that rewrites follow-up questions; empty: the same as llm."
    )
    endpoint_names: dict[Address, str] = Field(
        default_factory=dict,
        description='Names under which the model cache keeps endpoints that move, such as {"10.0.0.7:8000/v1": "lab"}.',
    )
    judge_needed_threshold: Threshold | None = Field(
        default=None,
        description="Judge logprob: least probability that a chunk is needed, for score 1; unset: as calibrated.",
    )
    judge_alone_threshold: Threshold | None = Field(
        default=None,
        description="Judge logprob: least probability that it answers alone, for score 2; unset: as calibrated.",
    )
    embeddings: Address = Field(
        default=Address("auto"),
        description="auto (by the documents' scripts), local:minilm, local:use or a model as in llm.",
    )
    milvus_uri: Address = Field(
        default=Address(), description="Folder of Milvus Lite or http address; empty: home/milvus.db."
    )
    milvus_token: SecretStr = Field(default=SecretStr(""), description="user:password or token of a Milvus server.")
    search_snapshot: SearchSnapshot = Field(
        default="auto",
        description="auto, off: whether collections of Milvus Lite are searched in snapshots of their files: the same "
        "hits, faster.",
    )
    checkpoints: Address = Field(
        default=Address(),
        description="memory:, sqlite:///path, postgresql://… or redis://… (rediss:// for TLS); empty: sqlite in home.",
    )
    record: Record | None = Field(
        default=None,
        description="Texts of model calls to keep: full (messages and replies), prompts or none. Empty: full, but none "
        "in conversations.",
    )
    telemetry: Literal["none", "otlp"] = Field(
        default="none",
        description="otlp: send the tree of each question and turn as spans of OpenTelemetry, as OTEL_EXPORTER_OTLP_* "
        "say (extra telemetry).",
    )
    durability: Durability = Field(default="async", description="When checkpoints are written: sync, async or exit.")
    searxng_url: Address = Field(
        default=Address(), description="Address of a SearXNG for web searches; empty: none are made."
    )
    proxy_loopback: bool = Field(
        default=False,
        description="on: the proxies of the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) are for servers of this "
        "machine too.",
    )
    home: Path = Field(default_factory=find_home, description="Folder for models, vectors and checkpoints.")
    temperature: float = Field(
        default=0.0,
        ge=0,
        le=2,
        allow_inf_nan=False,
        description="Sampling temperature of the model that answers; 0: the likeliest answer. Judges stay at 0.",
    )
    thinking: bool | None = Field(
        default=None,
        description="on, off: whether the model that answers thinks first; empty: as its endpoint does. Judges keep "
        "their endpoint's way.",
    )
    max_concurrency: int = Field(
        default=64,
        ge=1,
        description="Most model calls at once, over all questions: 16 first, more while latency holds.",
    )
    requests_per_minute: int = Field(
        default=0, ge=0, description="Most calls a minute, per chat or embedding model; 0: no limit."
    )
    tokens_per_minute: int = Field(
        default=0, ge=0, description="Most tokens a minute, per chat or embedding model; 0: no limit."
    )
    timeout_s: float = Field(
        default=600.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds an attempt of a model call may take, from its request to the end of its reply.",
    )
    max_reply_bytes: int = Field(
        default=MAX_REPLY_BYTES, ge=1000, description="Most bytes of text and thinking that a model may reply."
    )
    retries: int = Field(default=3, ge=0, description="Further attempts after a failed model call.")
    max_recent_turns: int = Field(
        default=10, ge=1, description="Newest turns of a conversation that a prompt may show."
    )
    max_relevant_turns: int = Field(
        default=3, ge=0, description="Older turns, those most like the question, that a prompt may show besides."
    )
    conversation_collection: Annotated[str, INERT] = Field(
        default="conversations", description="Collection that remembers the turns."
    )
    qa_log: str = Field(default="", description="File for answered turns, one JSON line each; empty: none.")
    conversation_expire_days: int = Field(
        default=30, ge=1, description="Days after which `conversations expire` deletes an unused conversation."
    )
    llm_max_tokens: int | None = Field(
        default=None,
        ge=512,
        description="Tokens that one prompt of a model may have: its context, less an answer. Longer evidence is "
        "digested first, other texts lose their middle. Unset: 8192 in conversations, no limit elsewhere.",
    )
    max_rewrite_tokens: int = Field(
        default=256, ge=16, description="Tokens of the longest rewrite of a question that is used."
    )
    max_summary_tokens: int = Field(
        default=512, ge=32, description="Tokens of a conversation's summary, or of a digest of its evidence."
    )
    max_thinking_tokens: int = Field(
        default=1024,
        ge=0,
        description="Tokens that a rewrite, summary or digest may use besides, for a model that thinks first.",
    )
    max_evidence_tokens: int = Field(
        default=2048, ge=0, description="Tokens of evidence of earlier turns that a turn looks at; 0: none."
    )
    max_kept_chunks: int = Field(default=6, ge=0, description="Chunks of earlier turns that a turn looks at; 0: none.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let arguments win over the environment, and the environment over a trusted ``.env``."""
        try:
            if (file := env_file_here()) is None:
                return init_settings, env_settings
            from_file = EnvSettingsSource(settings_cls)
            given = {*init_settings(), *env_settings()}
            from_file.env_vars = usable_variables(file, settings_cls.model_fields, _PREFIX, but=given)
        except NotTrusted as error:
            raise SettingsError(str(error)) from error
        return init_settings, env_settings, from_file

    @field_validator("prompts", mode="before")
    @classmethod
    def _read_empty(cls, file: object) -> object:
        return None if file == "" else file

    @field_validator("thinking", mode="before")
    @classmethod
    def _read_switch(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        word = value.strip().lower()
        if word not in _SWITCH:
            raise PydanticCustomError("switch", "Input should be on, off or empty")
        return _SWITCH[word]

    @field_validator("home")
    @classmethod
    def _expand_home(cls, home: Path) -> Path:
        return home.expanduser()

    @field_serializer(
        "llm",
        "llm_base_url",
        "judge_llm",
        "condense_llm",
        "embeddings",
        "milvus_uri",
        "checkpoints",
        "searxng_url",
        when_used="json",
    )
    def _serialize_address(self, address: str) -> str:
        return without_secrets(address)

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        for name, value in super().__repr_args__():
            yield name, without_secrets(value) if isinstance(value, str) else value

    def with_models(
        self,
        *,
        llm: str | None = None,
        judge_llm: str | None = None,
        condense_llm: str | None = None,
        embeddings: str | None = None,
        temperature: float | None = None,
        thinking: bool | None = None,
        prompts: Path | None = None,
        record: Record | None = None,
    ) -> Settings:
        """Return the settings with other models, prompts, options or recording; None keeps the present value."""
        specs = {"llm": llm, "judge_llm": judge_llm, "condense_llm": condense_llm, "embeddings": embeddings}
        others = {"temperature": temperature, "thinking": thinking, "prompts": prompts, "record": record}
        chosen: dict[str, object] = {name: Address(spec) for name, spec in specs.items() if spec is not None}
        return self.model_copy(update=chosen | {name: value for name, value in others.items() if value is not None})

    def secrets(self) -> tuple[str, ...]:
        """Return all keys and passwords in the settings and the environment, for ``redaction.starred``."""
        values = [getattr(self, name) for name in type(self).model_fields]
        values += [Address(os.environ.get("OPENAI_BASE_URL", "")), *self.endpoint_names]
        keys = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        keys += [os.environ.get(name, "") for name in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY")]
        keys += [part for key in keys for part in key.split(":", 1)[1:]]  # user:password of Milvus
        keys += [key.strip() for key in keys]  # as they are sent
        return tuple(
            filter(None, (*keys, *(word for each in values if isinstance(each, Address) for word in each.secrets())))
        )

    @property
    def milvus_address(self) -> Address:
        """Address of the collections: the setting, else ``milvus.db`` in the home folder."""
        return self.milvus_uri or Address(str(self.home / "milvus.db"))

    @property
    def checkpoint_url(self) -> Address:
        """URL of the checkpoints: the setting, else a SQLite file in the home folder."""
        return self.checkpoints or Address(f"sqlite:///{self.home / 'checkpoints.sqlite'}")

    @property
    def llm_spec(self) -> Address:
        """The model that answers: the setting, else one of the service whose key is set, else the local one."""
        if self.llm:
            return self.llm
        if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
            return Address("openai:gpt-4o-mini")
        if os.environ.get("DASHSCOPE_API_KEY"):
            return Address("dashscope:qwen-plus")
        return Address("local:")

    @property
    def judge_spec(self) -> Address:
        """The model that judges."""
        return self.judge_llm or self.llm_spec


def load_settings(**overrides: object) -> Settings:
    """Load settings from the environment and ``.env``; keyword arguments that are not None override them.

    >>> load_settings(retries=1).retries
    1

    Raises:
        SettingsError: A setting is unknown, or a value is not allowed; the message names the variable, the fault and
            what is allowed. It repeats only short values, and no secrets.
    """
    given = {key: value for key, value in overrides.items() if value is not None}
    if unknown := sorted(given.keys() - Settings.model_fields.keys()):
        raise SettingsError(f"No such settings: {', '.join(unknown)}. Allowed: {', '.join(Settings.model_fields)}.")
    try:
        settings = Settings(**given)  # type: ignore[arg-type]
        warn_of_unknown(Settings.model_fields, _PREFIX)
        return settings
    except ValidationError as error:
        faults = "; ".join(_fault(str(fault["loc"][0]), fault["msg"], fault["input"]) for fault in error.errors())
        raise SettingsError(f"Settings are not usable: {faults}. Correct the environment variable or .env.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"The settings file .env is not UTF-8 ({error.reason}). Save it as UTF-8.") from error
    except NotTrusted as error:
        raise SettingsError(str(error)) from error


def _fault(name: str, message: str, value: object) -> str:
    is_secret = Settings.model_fields[name].annotation is SecretStr
    echo = "" if is_secret or len(repr(value)) > _LONGEST_ECHO + 2 else f" (got {value!r})"
    return f"{_PREFIX}{name.upper()}: {message}{echo}"
