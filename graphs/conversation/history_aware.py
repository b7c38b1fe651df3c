"""A retriever that understands follow-up questions, as a LangChain ``Runnable`` for chains of any kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from ...modules.background_loop import background_loop
from ...modules.calls.messages import CallOptions
from ...modules.calls.prompts import Prompts
from ...modules.calls.tokens import message_tokens, shortened
from ...modules.calls.usage import CallMeter
from ...modules.errors import ModelCallError, ModelSetupError, SettingsError
from ...modules.llm.call_gate import CallGate
from ...modules.llm.contract import ChatLLM
from ...modules.llm.factory import create_llm
from ...modules.llm.langchain_chat import LangChainModel, as_chat_llm
from ...modules.memory.messages import GivenHistory, pairs_of
from ...modules.memory.prompts import condense_messages, render_pairs
from ...modules.memory.rewrites import read_rewrite
from ...modules.prompts.reading import GivenPrompts, load_prompts
from ...modules.settings import Settings, load_settings
from .turn.context import TurnLimits

logger = logging.getLogger(__name__)


def create_history_aware_retriever(
    llm: str | ChatLLM | LangChainModel,
    retriever: Runnable[str, Sequence[Document]],
    *,
    settings: Settings | None = None,
    get_chat_history: Callable[[GivenHistory], str] | None = None,
    limits: TurnLimits | None = None,
    prompts: GivenPrompts = None,
) -> Runnable[Mapping[str, object], list[Document]]:
    """Make a retriever for ``{"input": question, "chat_history": [...]}`` that returns documents, best first.

    A question with history is condensed first: one model call makes it stand alone. Without history, or if the model
    gives no usable rewrite, the question is searched for as it was asked. It may be invoked from any thread or event
    loop: the model is called on judgetree's own loop, the retriever on the caller's.

    ::

        search = create_history_aware_retriever("local:", retriever)
        search.invoke({"input": "And how hot?", "chat_history": [("Which gasket seals it?", "A Dorsan gasket.")]})

    Args:
        llm: Model that condenses: a spec such as ``openai:gpt-4o-mini`` or ``local:``, a ``ChatLLM``, or a chat
            model of LangChain.
        retriever: A ``Retriever``, any LangChain retriever, or another runnable from a question to documents.
        settings: None reads environment and ``.env``.
        get_chat_history: Converts the value of ``chat_history`` to text, ``""`` for none; without it the value has a
            form that ``GivenHistory`` allows.
        limits: Tokens of the prompt, the rewrite and thinking; None takes those of the settings. A rewrite that is
            longer, or not a question, is not used.
        prompts: Prompts of one's own, as for ``RagSession``; ``condense`` is used.

    Raises:
        UserError: The model is none, or cannot be opened, as in ``create_llm``, or the prompts are not usable.

    Invoking raises:
        SettingsError: The input has another form.
        ModelSetupError: The endpoint refuses the key, the model's name or the request.
        LoopReentryError: ``invoke`` with history on judgetree's own loop; use ``ainvoke`` there.
    """
    settings = settings or load_settings()
    model = create_llm(llm, settings, CallGate(settings.max_concurrency)) if isinstance(llm, str) else as_chat_llm(llm)
    bounds = limits or TurnLimits.from_settings(settings)
    own = load_prompts(settings.prompts if prompts is None else prompts)
    render = get_chat_history or _rendered

    def search(given: Mapping[str, object], config: RunnableConfig) -> list[Document]:
        query, history = _read(given, render)
        if history:
            query = background_loop().run(_condensed(model, history, query, bounds, own))
        return list(retriever.invoke(query, config))

    async def asearch(given: Mapping[str, object], config: RunnableConfig) -> list[Document]:
        query, history = _read(given, render)
        if history:
            query = await background_loop().arun(_condensed(model, history, query, bounds, own))
        return list(await retriever.ainvoke(query, config))

    return RunnableLambda(search, asearch, name="history_aware_retriever")


async def _condensed(llm: ChatLLM, history: str, query: str, limits: TurnLimits, prompts: Prompts) -> str:
    asked = shortened(query, limits.max_tokens // 4)
    room = limits.max_tokens - message_tokens(condense_messages("", asked, prompts))
    messages = condense_messages(shortened(history, room), asked, prompts)
    options = CallOptions(max_tokens=limits.max_rewrite_tokens + limits.max_thinking_tokens)
    try:
        completion = await llm.complete(messages, meter=CallMeter(node="condense"), options=options)
    except ModelSetupError:
        raise
    except ModelCallError as error:  # an endpoint's empty reply raises it too
        logger.warning("The question is searched for as it was asked, since it cannot be condensed: %s", error)
        return query
    is_cut = completion.is_cut_off
    rewrite = read_rewrite(completion.written, query, max_tokens=limits.max_rewrite_tokens, cut_off=is_cut)
    if rewrite.problem:
        logger.warning("The question is searched for as it was asked; of its rewrite: %s", rewrite.problem)
    return rewrite.text or query


def _read(given: Mapping[str, object], render: Callable[[GivenHistory], str]) -> tuple[str, str]:
    """Return question and history as text; the history is ``""`` without one."""
    if not isinstance(given, Mapping) or not isinstance(query := given.get("input"), str) or not query.strip():
        raise SettingsError(f'The input {given!r:.80} holds no question. Give {{"input": "…", "chat_history": […]}}.')
    history = given.get("chat_history")
    return query, render(cast(GivenHistory, history)).strip() if history else ""


def _rendered(history: GivenHistory) -> str:
    if not isinstance(history, Sequence) or isinstance(history, str):
        raise SettingsError(
            f"chat_history is {history!r:.80}. Allowed: a list of (question, answer) tuples, messages or "
            '{"role": …, "content": …}; for another form give get_chat_history.'
        )
    return render_pairs(pairs_of(history))
