"""Keys as callers give them: plain values, and objects in place of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ...modules.addresses import Address
from ...modules.config.config import Trait
from ...modules.config.effects import LACKS, has_effect, lacking, words_without_effect
from ...modules.errors import SettingsError, did_you_mean
from ...modules.parts import name_of
from .rag_config import RagConfig

if TYPE_CHECKING:
    from ...modules.llm.contract import ChatLLM

_PARTS = RagConfig.keys_with(is_part=True)
_OF_QUESTIONS = RagConfig.keys_with(per_question=True)


@dataclass(frozen=True, kw_only=True)
class GivenKeys:
    """A configuration, and the objects that stand in place of its names: models, judges, policies, retrievers, tools.

    ::

        keys = GivenKeys.of(RagConfig(topk=5), {"judge": MyJudge()}, where="The session")
    """

    config: RagConfig = field(default_factory=RagConfig)
    objects: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, config: RagConfig | None, keys: Mapping[str, object], *, where: str) -> GivenKeys:
        """Return a configuration with other keys, of which some may be objects.

        Raises:
            SettingsError: A key is unknown, or a value is not allowed.
        """
        objects = {name: value for name, value in keys.items() if name in _PARTS and not _is_name(name, value)}
        plain = {name: value for name, value in keys.items() if name not in objects}
        before = {} if config is None else {k: v for k, v in config.given.items() if k not in objects}
        return cls(config=RagConfig.of({**before, **plain}, where=where), objects=objects)

    @classmethod
    def of_question(cls, keys: Mapping[str, object]) -> GivenKeys:
        """Return the keys that one question has otherwise than its session; None leaves a key to the session.

        Raises:
            SettingsError: A key is unknown or belongs to sessions, or a value is not allowed.
        """
        for name in keys:
            if name not in _OF_QUESTIONS:
                raise SettingsError(
                    f"A question takes no {name!r}.{did_you_mean(name, _OF_QUESTIONS)} Allowed: "
                    f"{', '.join(_OF_QUESTIONS)}."
                )
        return cls.of(None, {name: value for name, value in keys.items() if value is not None}, where="The question")

    def refuse_unused(self, system: str, has: Set[Trait]) -> None:
        """Check that no key is given that a system can have no use for.

        Args:
            system: Its name.
            has: What it has.

        Raises:
            SettingsError: One is.
        """
        for name in self.names():
            lack = lacking(RagConfig, name, has)
            if lack is not None and self[name] != RagConfig.model_fields[name].default:
                raise SettingsError(f"The system {system!r} {LACKS[lack]}: leave {name} out.")

    def without_effect(self, has: Set[Trait], of_question: GivenKeys) -> Iterator[str]:
        """Yield a sentence for each key that has no effect on a question of a system, and what would give it one.

        Args:
            has: What the system has.
            of_question: What the question has otherwise.
        """
        own, others = set(of_question.names()), set(self.names())

        def value_of(name: str) -> object:
            return of_question[name] if name in own else self[name]

        for name, known in RagConfig.model_fields.items():
            is_given = name in own | others and value_of(name) != known.default
            if is_given and not has_effect(RagConfig, name, has, value_of):
                yield words_without_effect(RagConfig, name, described(value_of(name)))

    def refuse_beside_context(self) -> None:
        """Check that all keys may differ by question, or name the retriever; services made by hand have no others.

        Raises:
            SettingsError: One may not.
        """
        if names := [name for name in self.names() if name not in (*_OF_QUESTIONS, "retriever")]:
            raise SettingsError(
                f"{', '.join(names)} cannot be set beside a context, which holds what they describe: give it to "
                "RagContext(…)."
            )

    @classmethod
    def fitting(cls, config: RagConfig, has: Set[Trait]) -> RagConfig:
        """Return the keys of a configuration that a system may have a use for."""
        return RagConfig(**{name: value for name, value in config.given.items() if not lacking(RagConfig, name, has)})

    def __getitem__(self, name: str) -> object:
        """Return the object of a key, else its value."""
        return self.objects[name] if name in self.objects else getattr(self.config, name)

    def names(self) -> tuple[str, ...]:
        """Return the keys that are given, in the order of the configuration."""
        return tuple(name for name in RagConfig.model_fields if name in self.objects or name in self.config.given)

    def saved(self) -> dict[str, Any]:
        """Return what is given as JSON values, for ``RagConfig`` in another process; models and prompts are left out.

        An object stands there by its name, which finds a class or function.
        """
        names = [name for name in self.names() if not RagConfig.key(name).is_model]
        plain = self.config.model_dump(mode="json", include={*names})
        return {name: _saved(self.objects[name]) if name in self.objects else plain[name] for name in names}

    def described(self) -> dict[str, str]:
        """Describe what is given by name, without secrets."""
        return {name: described(self[name]) for name in self.names()}


def _is_name(key: str, value: object) -> bool:
    if key == "tools":
        return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return value is None or isinstance(value, str)


def _saved(value: object) -> object:
    if isinstance(value, list | tuple):
        return [each if isinstance(each, str) else name_of(each) for each in value]
    return name_of(value)


def described(value: object) -> str:
    """Return the value of a key as text, without secrets."""
    from ...modules.llm.langchain_chat import LangChainModel, name_of_llm

    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return str(Address(value))
    if isinstance(value, LangChainModel) or hasattr(value, "complete"):
        return name_of_llm(cast("ChatLLM", value))
    return str(getattr(value, "name", None) or value)
