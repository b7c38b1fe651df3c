"""Turns of dialogues, asked in conversations that a system leads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ...graphs.config.variants import system_name
from ...graphs.conversation.conversation import FIRST
from ...graphs.conversation.turn.context import ConversationOptions
from ...graphs.conversations import Conversations
from ...graphs.rag.search_tree import SearchTree
from ...graphs.threads.recording import Recording
from ...modules.addresses import Address
from ...modules.calls.prices import ModelUsage, usage_by_model
from ...modules.calls.record import count_caveats
from ...modules.calls.usage import CallRecord
from ...modules.caveats.kinds import Caveats
from ...modules.memory.turns import PathSpans, QaPair, given_id
from ...modules.settings import Settings
from ..datasets.dialogue_turns import turn_of
from ..datasets.questions import DialogueTurn
from ..metrics.damage import Damage, damage_to_calls, in_order
from ..rows.store import Place, RunRow
from ..rows.turn_facts import TurnFacts, TurnReply
from .jobs import Job, conversation_name_of, leads_conversations
from .services import Services
from .turn_calls import RecordingLLM, noted_judge, record_calls
from .turn_evidence import TurnEvidenceReader


class TurnAsker:
    """Conversations of one system and repeat; use it on judgetree's background loop.

    If the system leads its own conversations, a turn follows the system's answer to its parent, and fails without being
    asked if that failed. A turn whose parent is not among the questions begins a path after the data set's history.

    If the history is given, each turn has a conversation of its own, which is not remembered.
    """

    def __init__(
        self,
        services: Services,
        system: str,
        repeat: int,
        *,
        fresh: bool,
        settings: Settings,
        recording: Recording,
        run_id: str,
        newest: Mapping[Place, RunRow],
    ) -> None:
        """``fresh``: as in ``Services.context``.

        ``settings`` name the store of the conversations, ``recording`` the place of what their calls are sent and
        reply; ``newest`` holds the rows of the turns that others follow.
        """
        context = services.context(system, repeat, fresh=fresh)
        self._run_id = run_id
        self._newest = newest
        self._turns = {question.id: turn_of(question) for question in services.dataset.questions}
        self._leads = leads_conversations(services.experiment, services.dataset.questions)
        self._evidence = TurnEvidenceReader(context.retriever, services.dataset.key_field)
        self._model = context.reader.model
        self._conversations = Conversations(
            system=system_name(system),
            context=replace(
                context,
                reader=RecordingLLM(context.reader),
                judge=noted_judge(context.judge) if context.judge else None,
            ),
            settings=settings.model_copy(update=_measured(run_id)),
            recording=recording,
            options=ConversationOptions(**vars(services.experiment.conversation)),
            memory=None if self._leads else NoMemory(),
        )

    async def ask(self, job: Job, *, thread_id: str) -> TurnReply:
        """Answer one turn; ``thread_id`` names the request, so a repeated call returns the same turn.

        Raises:
            UserError: The conversation cannot be opened, or a model's key, account or settings are wrong.
        """
        turn = turn_of(job.question)
        path = self._path_before(job) if self._leads else []
        if path is None:
            return _unasked_reply(turn)
        before = path[0].conversation if path else None
        name = conversation_name_of(self._run_id, job, by_dialogue=self._leads)
        with record_calls() as calls:
            result = await self._conversations.conversation(name).aask(
                job.question.question,
                parent_turn_id=before.turn_id if before else FIRST,
                request_id=thread_id,
                chat_history=_unasked_history(turn, path),
            )
        tree = result.tree
        facts = TurnFacts(
            dialogue_id=turn.dialogue_id,
            number=turn.number,
            conversation=name,
            turn_id=result.turn_id,
            rag_thread_id=tree.root.thread_id if tree else "",
            path_length=1 + (before.path_length if before else len(turn.history)),
            own=_own_usage(result.turn, tree, calls, self._model),
        )
        if result.turn is not None:
            evidence = await self._evidence.read(job.question, result.turn, tree, path)
            facts = replace(
                facts,
                standalone_query=result.turn["standalone_query"],
                answered_from=result.turn["answered_from"],
                needed_turns=self._needed(turn, result.turn, path),
                reused=evidence.reused,
                retrieved=evidence.retrieved,
            )
        return TurnReply(
            answer=result.answer,
            status=result.status,
            tree=tree,
            facts=facts,
            wall_s=result.wall_s,
            error=result.error,
            caveats=_caveats(tree, calls),
            damage=_damage(tree, calls, path),
        )

    async def aclose(self) -> None:
        """Close the store and the memory."""
        await self._conversations.aclose()

    def _path_before(self, job: Job) -> list[RunRow] | None:
        """Return the rows of the earlier turns of its path, the nearest first; None if one of them has no answer."""
        rows: list[RunRow] = []
        parent = turn_of(job.question).parent
        while parent in self._turns:
            row = self._newest.get((job.system, parent, job.repeat))
            if row is None or row.attempt != job.attempt or row.status == "failed":
                return None
            rows.append(row)
            parent = self._turns[parent].parent
        return rows

    def _needed(self, turn: DialogueTurn, answered: QaPair, path: Sequence[RunRow]) -> tuple[int, ...] | None:
        """Return the data set numbers of the turns that the answered turn needed."""
        if answered["needed_chat_history"] is None:
            return None
        numbers = {row.conversation.turn_id: row.conversation.number for row in path if row.conversation}
        numbers |= {given_id(place): number for place, number in enumerate(self._numbers_before(turn), start=1)}
        return tuple(sorted({numbers[each] for each in answered["needed_chat_history"] if each in numbers}))

    def _numbers_before(self, turn: DialogueTurn) -> list[int]:
        """Return the numbers of the turns of its history, oldest first."""
        numbers: list[int] = []
        parent = turn.parent
        while parent in self._turns:
            numbers.append(self._turns[parent].number)
            parent = self._turns[parent].parent
        # Turns outside the set come first: a dialogue with missing turns does not branch.
        return [*range(1, len(turn.history) - len(numbers) + 1), *reversed(numbers)]


class NoMemory:
    """A ``TurnMemory`` for conversations of one turn: it keeps nothing and costs nothing."""

    def missing(self, conversation_id: str, turn_ids: Collection[str]) -> set[str]:
        """Return an empty set."""
        return set()

    def add_turns(self, conversation_id: str, turns: Sequence[QaPair]) -> None:
        """Do nothing."""

    def get_recent_history(self, conversation_id: str, limit: int, *, spans: PathSpans) -> list[QaPair]:
        """Return an empty list."""
        return []

    def retrieve_relevant_history(
        self,
        conversation_id: str,
        query: str,
        top_k: int,
        *,
        spans: PathSpans | None = None,
        below_number: int | None = None,
    ) -> list[tuple[QaPair, float]]:
        """Return an empty list."""
        return []

    def turns_of(self, conversation_id: str, turn_ids: Collection[str] | None = None) -> list[QaPair]:
        """Return an empty list."""
        return []

    def conversations(self) -> list[str]:
        """Return an empty list."""
        return []

    def delete_turns(self, conversation_id: str, turn_ids: Collection[str] | None = None) -> int:
        """Return 0."""
        return 0


def _measured(run_id: str) -> dict[str, object]:
    """Settings of a run's conversations: a memory of its own, no log, and the measured model for all calls."""
    return {"conversation_collection": memory_of(run_id), "qa_log": "", "condense_llm": Address()}


def memory_of(run_id: str) -> str:
    """Name the collection for the turns of one run."""
    return f"eval_turns_{run_id.replace('-', '')}"


def _unasked_history(turn: DialogueTurn, path: Sequence[RunRow]) -> list[tuple[str, str]]:
    """Build the history of a path whose first turns were never asked: those turns, then the asked ones.

    ``path`` holds the asked turns, the nearest first. Empty if the conversation knows the whole path.
    """
    unasked = turn.history[: max(0, len(turn.history) - len(path))]
    asked = [(row.question, row.prediction) for row in reversed(path)]
    return [*unasked, *asked] if unasked else []


def _unasked_reply(turn: DialogueTurn) -> TurnReply:
    why = f"It was not asked, because its previous turn {turn.parent}, or an earlier one, failed."
    length = len(turn.history) + 1
    facts = TurnFacts(dialogue_id=turn.dialogue_id, number=turn.number, conversation="", path_length=length)
    return TurnReply(answer="", status="failed", tree=None, facts=facts, error=why)


def _damage(tree: SearchTree | None, noted: Iterable[CallRecord], path: Iterable[RunRow]) -> Damage:
    """Collect the damage of the conversation's own calls and of the earlier turns on its path."""
    earlier = sum(row.completeness != "complete" for row in path)
    return in_order({**damage_to_calls(_calls_outside_search(tree, noted)), "damaged_earlier_turns": earlier})


def _caveats(tree: SearchTree | None, noted: Iterable[CallRecord]) -> Caveats:
    searched = (record for node in tree.query_nodes() for record in node.usage) if tree else ()
    return count_caveats((*searched, *_calls_outside_search(tree, noted)))


def _calls_outside_search(tree: SearchTree | None, noted: Iterable[CallRecord]) -> list[CallRecord]:
    """Return the noted calls outside the search, each once."""
    of_search = {record["call_id"] for node in tree.query_nodes() for record in node.usage} if tree else set()
    return list({record["call_id"]: record for record in noted if record["call_id"] not in of_search}.values())


def _own_usage(turn: QaPair | None, tree: SearchTree | None, noted: Iterable[CallRecord], model: str) -> ModelUsage:
    """Return the usage of a turn outside its search.

    The turn itself records what was paid, before an interruption too; for a failed turn, and for cached calls, the
    noted calls count.
    """
    usage = next(iter(usage_by_model(_calls_outside_search(tree, noted))), ModelUsage(model=model, kind="chat"))
    if turn is None:
        return usage
    whole, search = turn["usage"], tree.usage if tree else None
    return replace(
        usage,
        calls=whole["llm_calls"] - (search["llm_calls"] if search else 0),
        prompt_tokens=whole["prompt_tokens"] - (search["prompt_tokens"] if search else 0),
        completion_tokens=whole["completion_tokens"] - (search["completion_tokens"] if search else 0),
    )
