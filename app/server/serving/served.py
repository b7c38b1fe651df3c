"""What a server serves: collections under systems, each opened at its first question and shared by all requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from ....graphs.config.given_keys import GivenKeys, described
from ....graphs.config.limits import Limits
from ....graphs.config.rag_config import RagConfig
from ....graphs.conversation.conversation import Conversation, ConversationContents
from ....graphs.conversation.turn.context import ConversationOptions
from ....graphs.conversation.turn.store import ConversationPage
from ....graphs.conversations import Conversations
from ....graphs.systems.registry import find_system, retrieves
from ....modules.calls.prices import load_prices
from ....modules.calls.record import CallRecord
from ....modules.config.effects import lacking, words_without_effect
from ....modules.index.schema import check_not_reserved
from ....modules.llm.call_gate import CallGate
from ....modules.llm.contract import ChatLLM
from ....modules.llm.factory import create_llm
from ....modules.llm.tuned import bounded
from ....modules.settings import Settings
from ...stores.collections import CollectionContents, CollectionReader, CollectionSummary
from ...stores.patience import Patience
from ...stores.saved_trees import SavedTrees
from ..keys.book import KeyBook
from ..keys.spending import KeyLedger
from ..keys.tables import KeyTables
from .admission import QuestionAdmissions, per_question_of
from .caller import Caller
from .errors import ApiError, NoAnswerInTime
from .options import ServerOptions
from .running import RunningQuestions
from .unnamed import is_unnamed

logger = logging.getLogger(__name__)

FAST = "fast"
"""Id of the cheap model that runs no tree."""
_MOST_DRAWN = 2


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A collection under a system, which clients of the chat completions name as their model."""

    collection: str
    """``""`` for a system without a search."""
    system: str

    @property
    def id(self) -> str:
        """Id as clients send it.

        >>> ServedModel(collection="standards", system="judge").id
        'standards/judge'
        """
        return f"{self.collection}/{self.system}" if self.collection else self.system


_CLOSED_BOOK = ServedModel(collection="", system="llm")


class Served:
    """The collections, systems and models of a server."""

    def __init__(self, settings: Settings, options: ServerOptions) -> None:
        for name in options.collections or ():
            check_not_reserved(name, settings)
        _name_unused_keys(options)
        self.settings = settings
        self.options = options
        self.trees = SavedTrees(settings)
        """Search trees of conversations and of other questions."""
        self.drawing = asyncio.Semaphore(_MOST_DRAWN)
        """To be held while a picture is drawn: each is a process that may take seconds."""
        self.keys = KeyBook(tables := KeyTables(settings))
        self.prices = load_prices(settings.home)
        self.admissions = QuestionAdmissions(options, KeyLedger(tables), self.prices, self._abandoned_calls)
        """Places for questions, and the budgets of keys."""
        self.running = RunningQuestions()
        self._opened: dict[ServedModel, Conversations] = {}
        self._gate = CallGate(settings.max_concurrency)  # one for all models
        self._opening = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._resources.push_async_callback(asyncio.to_thread, tables.close)
        self._fast: ChatLLM | None = None
        self._reader = CollectionReader(settings)
        self._patience = Patience(options.max_store_seconds, NoAnswerInTime)
        self._listed: list[CollectionSummary] = []
        self._closed = [ServedModel(collection="", system=each) for each in options.systems if is_closed(each)]

    async def collections(self, caller: Caller) -> list[CollectionSummary]:
        """Return the served collections that the caller may use, sorted by name."""
        self._listed = [each.summary for each in await self._patience.call(self._reader.read_all)]
        return self._usable(caller)

    async def collection(self, caller: Caller, name: str) -> CollectionContents:
        """Return a served collection with its files.

        Raises:
            ApiError: HTTP 404: there is none of this name, or the caller may not use it.
        """
        found = await self._patience.call(self._reader.read, name) if self.may_use(caller, name) else None
        if found is None:
            raise ApiError.not_found("collection", name)
        return found

    def _usable(self, caller: Caller) -> list[CollectionSummary]:
        return [each for each in self._listed if self.may_use(caller, each.name)]

    def may_use(self, caller: Caller, collection: str) -> bool:
        """Return whether a caller may search and fill a collection, existing or not, on this server."""
        served = self.options.collections
        return caller.may_use(collection) and (served is None or collection in served)

    def usable_names(self, caller: Caller) -> list[str] | None:
        """Return the names of the collections, existing or not, that a caller may search and fill; None for any."""
        named = caller.collections if self.options.collections is None else self.options.collections
        return None if named is None else sorted(name for name in named if self.may_use(caller, name))

    async def models(self, caller: Caller) -> list[ServedModel]:
        """Return what the caller may ask: each collection under each system, and the systems without a search.

        While Milvus does not answer, the collections are those that it named last.

        Raises:
            NoAnswerInTime: It has not named any yet.
        """
        try:
            listed = await self.collections(caller)
        except NoAnswerInTime:
            if not self._listed:
                raise
            listed = self._usable(caller)
        collections = [each.name for each in listed if not each.problem]
        searching = [
            ServedModel(collection=collection, system=system)
            for collection in collections
            for system in self.options.systems
            if retrieves(system)
        ]
        return searching + self._closed

    async def find_model(self, caller: Caller, model_id: str) -> ServedModel:
        """Return the model of an id.

        Raises:
            ApiError: HTTP 404: there is none, or the caller may not use it.
            CollectionError: It names the collection of the conversations' memory.
        """
        for model in [*self._opened, *self._closed]:  # spares the reading of all collections
            is_allowed = not model.collection or self.may_use(caller, model.collection)
            if model.id == model_id and is_allowed and model.system in self.options.systems:
                return model
        found = {model.id: model for model in await self.models(caller)}
        if model_id not in found:
            collection, slash, _ = model_id.partition("/")
            if slash and self.may_use(caller, collection):
                check_not_reserved(collection, self.settings)
            allowed = ", ".join([*found, FAST])
            message = f"There is no model {model_id!r:.200}. Models: {allowed}."
            raise ApiError(404, message, param="model", code="model_not_found")
        return found[model_id]

    async def conversations(self, model: ServedModel) -> Conversations:
        """Return the conversations over a model, opened at their first request.

        Raises:
            UserError: The settings, the collection, a key or a model name needs a correction.
        """
        async with self._opening:
            if model not in self._opened:
                opened = Conversations(
                    model.collection,
                    options=ConversationOptions(switch_collection=True),
                    system=model.system,
                    config=self._config_of(model.system),
                    settings=self.settings,
                    gate=self._gate,
                )
                self._resources.push_async_callback(opened.aclose)
                self._opened[model] = opened
            return self._opened[model]

    async def any_conversations(self) -> Conversations:
        """Return conversations over any model: all share one store, which lists, reads and deletes the same."""
        found = next(iter(self._opened.values()), None)
        return await self.conversations(_CLOSED_BOOK) if found is None else found

    async def _abandoned_calls(self, name: str) -> tuple[str, Sequence[CallRecord]]:
        """Return the id and the model calls of a conversation's open turn, unless a process is answering it."""
        return await (await self.any_conversations()).conversation(name).aabandoned_calls()

    async def conversation_page(self, caller: Caller, *, limit: int, offset: int, unnamed: bool) -> ConversationPage:
        """Return a part of the caller's conversations, the most recently updated first, under the names that are kept.

        Other conversations are not read, nor are those whose requests named none unless ``unnamed`` is set.
        """
        prefix = caller.stored_name("")

        def is_hidden(stored: str) -> bool:
            return not unnamed and is_unnamed(stored.removeprefix(prefix))

        conversations = await self.any_conversations()
        return await conversations.apage(limit, offset=offset, prefix=prefix, is_hidden=is_hidden)

    async def conversation(self, caller: Caller, name: str) -> Conversation:
        """Return an existing conversation of the caller, to be changed, over any model.

        Raises:
            ApiError: HTTP 404: there is none of this name.
        """
        found = (await self.any_conversations()).conversation(caller.stored_name(name))
        if not await found.abranches():
            raise ApiError.not_found("conversation", name)
        return found

    async def contents(self, caller: Caller, name: str) -> ConversationContents:
        """Return what a conversation of the caller holds.

        Raises:
            ApiError: HTTP 404: there is none of this name.
        """
        found = (await self.any_conversations()).conversation(caller.stored_name(name))
        contents = await found.acontents()
        if contents is None:
            raise ApiError.not_found("conversation", name)
        return contents

    async def fast(self) -> ChatLLM:
        """Return the cheap model, opened at its first call.

        Raises:
            UserError: Its name, its address or a key needs a correction.
        """
        async with self._opening:
            if self._fast is None:
                settings = self.settings
                spec = self.options.fast_llm or settings.condense_llm or settings.llm_spec
                llm = await asyncio.to_thread(create_llm, str(spec), settings, self._gate)
                self._fast = bounded(llm, settings.llm_max_tokens)
            return self._fast

    async def close(self) -> None:
        """End running questions after their checkpoints, and free collections and stores."""
        await self.running.aclose()
        self._opened.clear()
        await self.trees.aclose()
        await self._resources.aclose()
        await asyncio.to_thread(self._reader.close)

    def limits_of(self, caller: Caller) -> Limits:
        """Return the limits of each question of a caller."""
        most = per_question_of(caller, self.options)
        return self.options.config.part(Limits).changed(
            max_tree_tokens=most.tokens, max_tree_cost_usd=most.usd, max_tree_seconds=most.seconds
        )

    def _config_of(self, system: str) -> RagConfig:
        """Return the keys of the server that a system has a use for."""
        return GivenKeys.fitting(self.options.config, find_system(system).has)


def _name_unused_keys(options: ServerOptions) -> None:
    """Log a warning for each key that no served system has a use for."""
    has = frozenset(trait for each in options.systems for trait in find_system(each).has)
    for name, value in options.config.given.items():
        if lacking(RagConfig, name, has) and value != RagConfig.model_fields[name].default:
            logger.warning(words_without_effect(RagConfig, name, described(value)))


def asks_sub_questions(system: str) -> bool:
    """Return whether chunks of a system may ask sub-questions, so that it has a policy; those of one's own may."""
    return find_system(system).asks_sub_questions


def is_closed(system: str) -> bool:
    """Return whether a system answers without a collection."""
    return not retrieves(system)


def served_of(request: Request) -> Served:
    """Return what the application serves."""
    return cast(Served, request.app.state.served)


ServedBy = Annotated[Served, Depends(served_of)]
