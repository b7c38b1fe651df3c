"""Self-Ask: follow-ups answered from their own chunks; the reader sees the first chunks and the pairs."""

from __future__ import annotations

from judgetree.graphs.systems.self_ask import build_self_ask
from judgetree.graphs.threads.state import RagState
from judgetree.modules.reader.multistep_prompts import FINAL_ANSWER, FOLLOW_UP, FOLLOW_UP_SYSTEM, follow_up_messages
from judgetree.modules.reader.prompts import READER_SYSTEM, REFUSAL, reader_messages
from tests.graphs.fakes import FakeLLM
from tests.graphs.systems.test_rounds import ROOT, SUB, context_of

CLASS_OF = "What class is KS-1?"
FIRST_CHUNKS = "[1] a.md\nKS-1 is class Delta.\n\n[2] n.md\nnoise"


def run(*replies: str, answers: dict[str, str], depth: int = 3, cut: str = "") -> tuple[RagState, FakeLLM]:
    """``replies`` of the one who asks, in order; ``answers`` of the reader by question, "Vellin" to the others.

    The endpoint cuts the reply ``cut``.
    """
    said = iter(replies)

    def reply(messages: object) -> str:
        (_, system), (_, user) = messages  # type: ignore[misc]
        question = user.splitlines()[0].removeprefix("Question: ")
        return next(said) if system == FOLLOW_UP_SYSTEM else answers.get(question, "Vellin")

    reader = FakeLLM(reply, lambda said: "length" if said == cut else "stop")
    return build_self_ask(context=context_of(reader, depth=depth)).invoke(ROOT), reader


def test_follow_ups_are_searched_for_and_answered_from_their_own_chunks() -> None:
    final, reader = run(f"{FOLLOW_UP} {SUB}", f"{FINAL_ANSWER} Vellin", answers={})
    assert [(step["query"], step["text"]) for step in final["steps"]] == [(ROOT, ""), (SUB, "Vellin")]
    read = [call for call in reader.calls if call[0][1] == READER_SYSTEM]
    assert read[0] == reader_messages(SUB, "[1] b.md\nDelta needs Vellin.\n\n[2] a.md\nKS-1 is class Delta.")


def test_the_one_who_asks_sees_question_and_pairs_refusals_included() -> None:
    _, reader = run(f"{FOLLOW_UP} {CLASS_OF}", f"{FOLLOW_UP} {SUB}", FINAL_ANSWER, answers={CLASS_OF: REFUSAL})
    asked = [call for call in reader.calls if call[0][1] == FOLLOW_UP_SYSTEM]
    assert asked == [
        follow_up_messages(ROOT, []),
        follow_up_messages(ROOT, [(CLASS_OF, REFUSAL)]),
        follow_up_messages(ROOT, [(CLASS_OF, REFUSAL), (SUB, "Vellin")]),
    ]


def test_the_reader_sees_the_first_chunks_and_the_pairs_that_are_knowledge() -> None:
    replies = (f"{FOLLOW_UP} {CLASS_OF}", f"{FOLLOW_UP} {SUB}", FINAL_ANSWER)
    final, reader = run(*replies, answers={CLASS_OF: REFUSAL})
    assert final["evidence"] == f"{FIRST_CHUNKS}\n\nSupplementary question: {SUB}\nAnswer: Vellin"
    assert reader.calls[-1] == reader_messages(ROOT, final["evidence"])
    answers = {chunk.metadata["chunk_id"]: chunk.metadata["round_answer"] for chunk in final["similar_chunks"]}
    assert answers == {"a": "Vellin", "b": "Vellin", "n": ""}, "the second follow-up found a again"


def test_an_answer_to_a_follow_up_that_was_cut_is_shown_to_neither() -> None:
    replies = (f"{FOLLOW_UP} {CLASS_OF}", f"{FOLLOW_UP} {SUB}", FINAL_ANSWER)
    final, reader = run(*replies, answers={CLASS_OF: "Delta is"}, cut="Delta is")
    assert final["evidence"] == f"{FIRST_CHUNKS}\n\nSupplementary question: {SUB}\nAnswer: Vellin"
    assert not any("Delta is" in text for call in reader.calls for _, text in call)


def test_its_own_final_answer_is_not_the_answer() -> None:
    final, reader = run(f"{FINAL_ANSWER} something else", answers={ROOT: "Vellin"})
    assert (final["answer"], final["evidence"], len(reader.calls)) == ("Vellin", FIRST_CHUNKS, 2)


def test_prose_instead_of_a_follow_up_ends_the_questions() -> None:
    final, _ = run("Let me think about oils for a while.", answers={})
    assert [step["query"] for step in final["steps"]] == [ROOT]


def test_an_invented_answer_ends_the_reply() -> None:
    final, _ = run(f"Intermediate answer: Vellin\n{FOLLOW_UP} {SUB}", answers={})
    assert [step["query"] for step in final["steps"]] == [ROOT]


def test_the_last_follow_up_that_depth_allows_is_answered() -> None:
    final, reader = run(f"{FOLLOW_UP} {SUB}", answers={}, depth=1)
    assert final["steps"][-1]["text"] == "Vellin"
    assert len(reader.calls) == 3
