import json
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.app.scripted.answers import (
    P_YES_WHEN_FALSE,
    P_YES_WHEN_TRUE,
    ChatReply,
    ParsedPrompt,
    PromptKind,
    ScriptedAnswers,
    evidence_reply,
    parse_prompt,
)
from judgetree.app.scripted.conversation import ScriptedConversation, conversation_reply
from judgetree.app.scripted.multistep import step_scripts
from judgetree.app.scripted.strategies import strategy_scripts
from judgetree.app.scripted.templates import PromptMismatch
from judgetree.evaluation.datasets.standards_qa import SupportingFact
from judgetree.modules.calls.messages import JSON_REPAIR, Message
from judgetree.modules.calls.prompts import DEFAULT_PROMPTS
from judgetree.modules.extraction.prompts import triples_messages
from judgetree.modules.judge import prompts as judge_prompts
from judgetree.modules.memory.prompts import SELECT_SYSTEM
from judgetree.modules.reader import prompts
from judgetree.modules.reader.evidence import as_material
from judgetree.modules.reader.multistep_prompts import THOUGHT_SYSTEM
from judgetree.modules.reader.prompts import REFUSAL
from tests.facts import fact, question

RIVET, STEEL, COATING = (
    fact(
        "a.md",
        "Bridges of class K are joined with rivet R7.",
        "Which rivet joins bridges of class K?",
        "R7",
        "What coats the steel of rivet R7?",
    ),
    fact(
        "b.md",
        "Rivet R7 is forged from steel S2.",
        "Which steel is rivet R7 forged from?",
        "S2",
        "What coats steel S2?",
    ),
    fact("c.md", "Steel S2 is coated with zinc.", "What is steel S2 coated with?", "zinc"),
)
CHAIN = question(
    "chain", "What coats the steel of the rivet that joins bridges of class K?", "zinc", RIVET, STEEL, COATING
)
OAK = fact("d.md", "橡木密度为720。", "橡木的密度是多少？", "720")
ASH = fact("e.md", "白蜡木密度为690。", "白蜡木的密度是多少？", "690")
COMPARED = question("compare", "橡木和白蜡木哪个更重？", "橡木", OAK, ASH, lang="zh", type="compare")
NOBODY_KNOWS = question("none", "Who painted bridge K?", "")
ANSWERS = ScriptedAnswers([CHAIN, COMPARED, NOBODY_KNOWS])
REST_AFTER_RIVET, REST_AFTER_STEEL = RIVET.remaining_question, STEEL.remaining_question

anything = st.text(max_size=60) | st.sampled_from(
    [
        "Passage:",
        "\n\nPassage:\n",
        "Query: Passage:",
        "\n\nEvidence:\nQuestion: ",
        judge_prompts.NEEDED_QUESTION,
        "\r\x85\u2028",
    ]
)
passages = st.lists(anything, max_size=4).map("".join)
one_liners = st.lists(anything, max_size=4).map(lambda parts: "".join(parts).replace("\n", " "))


JUDGED: dict[PromptKind, Callable[[str, str], list[Message]]] = {
    "judge": judge_prompts.judge_messages,
    "needed": judge_prompts.needed_messages,
    "alone": judge_prompts.alone_messages,
    "sub_question": judge_prompts.sub_question_messages,
    "look_up": judge_prompts.look_up_messages,
}


@given(query=one_liners, passage=passages)
def test_every_template_comes_apart_as_it_was_built(query: str, passage: str) -> None:
    for kind, build in JUDGED.items():
        assert parse_prompt(build(query, passage)) == ParsedPrompt(kind=kind, query=query, passage=as_material(passage))
    assert parse_prompt(prompts.reader_messages(query, passage)) == ParsedPrompt(
        kind="read", query=query, passage=passage
    )
    assert parse_prompt(prompts.closed_book_messages(query)) == ParsedPrompt(kind="closed_book", query=query)


def test_a_repair_retry_is_still_the_first_request() -> None:
    repair = JSON_REPAIR.format(problem="score is missing.")
    messages = [*judge_prompts.judge_messages("Q?", "P"), ("assistant", "nonsense"), ("user", repair)]
    assert parse_prompt(messages) == ParsedPrompt(kind="judge", query="Q?", passage="P")


@pytest.mark.parametrize(
    "messages", [[], [("user", "Query: x\n\nPassage:\ny")], [("system", "Be kind."), ("user", "Hi")]]
)
def test_a_foreign_system_message_is_of_kind_other(messages: Sequence[tuple[str, str]]) -> None:
    assert parse_prompt(messages) == ParsedPrompt(kind="other")


Reply = Callable[[ScriptedAnswers, Sequence[Message]], object]
by_strategy, in_rounds = (
    partial(evidence_reply, strategy_scripts(DEFAULT_PROMPTS)),
    partial(evidence_reply, step_scripts(DEFAULT_PROMPTS)),
)


def parse(answers: ScriptedAnswers, messages: Sequence[Message]) -> ParsedPrompt:
    return parse_prompt(messages)


def converse(answers: ScriptedAnswers, messages: Sequence[Message]) -> ChatReply | None:
    return conversation_reply(ScriptedConversation(answers), messages)


@pytest.mark.parametrize("reply", [by_strategy, in_rounds, converse])
def test_other_prompts_are_left_to_the_other_scripts(reply: Reply) -> None:
    assert reply(ANSWERS, prompts.reader_messages("Who?", RIVET.quote)) is None
    assert reply(ANSWERS, []) is None


@pytest.mark.parametrize(
    ("reply", "system", "user", "module"),
    [
        (parse, judge_prompts.JUDGE_SYSTEM, "Question: x\n\nPassage:\ny", "judge.prompts"),
        (parse, judge_prompts.NEEDED_SYSTEM, "Query: x\n\nPassage:\ny\n\nIs it?", "judge.prompts"),
        (parse, prompts.READER_SYSTEM, "Question: x\n\nEvidence:\ny\n\nQuestion: another", "reader.prompts"),
        (parse, prompts.CLOSED_BOOK_SYSTEM, "", "reader.prompts"),
        (by_strategy, prompts.NOTE_SYSTEM, "Who?", "reader.prompts"),
        (in_rounds, THOUGHT_SYSTEM, "Who?", "reader.multistep_prompts"),
        (converse, SELECT_SYSTEM, "Who?", "memory.prompts"),
    ],
)
def test_a_user_message_that_left_its_template_is_noticed(reply: Reply, system: str, user: str, module: str) -> None:
    with pytest.raises(PromptMismatch) as caught:
        reply(ANSWERS, [("system", system), ("user", user)])
    assert repr(user) in str(caught.value)
    assert f"judgetree.modules.{module}" in str(caught.value)


@pytest.mark.parametrize(
    ("query", "quotes", "verdict"),
    [
        (CHAIN.question, [], (0, "")),
        (CHAIN.question, [RIVET], (1, REST_AFTER_RIVET)),
        (CHAIN.question, [RIVET, STEEL], (1, REST_AFTER_STEEL)),
        (CHAIN.question, [STEEL], (1, RIVET.question)),
        (CHAIN.question, [STEEL, COATING], (1, RIVET.question)),
        (CHAIN.question, [RIVET, COATING], (1, STEEL.question)),
        (CHAIN.question, [COATING, STEEL, RIVET], (2, "")),
        (REST_AFTER_RIVET, [RIVET], (0, "")),
        (REST_AFTER_RIVET, [STEEL], (1, REST_AFTER_STEEL)),
        (REST_AFTER_RIVET, [COATING], (1, STEEL.question)),
        (REST_AFTER_RIVET, [STEEL, COATING], (2, "")),
        (REST_AFTER_STEEL, [COATING], (2, "")),
        (STEEL.question, [STEEL], (2, "")),
        (STEEL.question, [RIVET, COATING], (0, "")),
        (COMPARED.question, [OAK], (1, ASH.question)),
        (COMPARED.question, [ASH], (1, OAK.question)),
        (COMPARED.question, [ASH, OAK], (2, "")),
        (NOBODY_KNOWS.question, [RIVET, STEEL, COATING], (0, "")),
        ("Who asks this?", [RIVET, STEEL, COATING], (0, "")),
    ],
)
def test_the_judge_scores_by_quotes(query: str, quotes: list[SupportingFact], verdict: tuple[int, str]) -> None:
    assert ANSWERS.judge(query, " … ".join(fact.quote for fact in quotes)) == verdict


def test_quotes_and_queries_match_across_line_breaks() -> None:
    assert ANSWERS.judge(f" {STEEL.question.replace(' ', '  ')}\n", "Rivet R7 is\n  forged\tfrom steel S2.") == (2, "")
    assert ANSWERS.judge(STEEL.question.upper(), STEEL.quote) == (2, "")


def resolved(question: str, answer: str) -> str:
    return f"Supplementary question: {question}\nAnswer: {answer}"


@pytest.mark.parametrize(
    ("query", "evidence", "answer"),
    [
        (CHAIN.question, [RIVET.quote, STEEL.quote, COATING.quote], "zinc"),
        (CHAIN.question, [RIVET.quote, STEEL.quote], REFUSAL),
        (CHAIN.question, [], REFUSAL),
        (CHAIN.question, [RIVET.quote, resolved(REST_AFTER_RIVET, "zinc")], "zinc"),
        (CHAIN.question, [RIVET.quote, STEEL.quote, resolved(REST_AFTER_STEEL, "zinc")], "zinc"),
        (CHAIN.question, [RIVET.quote, resolved(REST_AFTER_STEEL, "zinc")], REFUSAL),
        (CHAIN.question, [resolved(REST_AFTER_RIVET, "zinc")], REFUSAL),
        (CHAIN.question, [RIVET.quote, resolved(REST_AFTER_RIVET, "lead")], REFUSAL),
        (CHAIN.question, [RIVET.quote, REST_AFTER_RIVET], REFUSAL),
        (CHAIN.question, [COATING.quote, STEEL.quote, resolved(RIVET.question, "R7")], "zinc"),
        (CHAIN.question, [resolved(fact.question, fact.answer) for fact in CHAIN.supporting], "zinc"),
        (REST_AFTER_RIVET, [STEEL.quote, COATING.quote], "zinc"),
        (REST_AFTER_STEEL, [COATING.quote.replace(" ", "\n")], "zinc"),
        (COMPARED.question, [OAK.quote, resolved(ASH.question, "690")], "橡木"),
        (COMPARED.question, [OAK.quote, "690"], REFUSAL),
        (NOBODY_KNOWS.question, [RIVET.quote], REFUSAL),
        ("Who asks this?", [RIVET.quote], REFUSAL),
    ],
)
def test_the_reader_answers_only_from_complete_evidence(query: str, evidence: list[str], answer: str) -> None:
    assert ANSWERS.read(query, "\n\n".join(evidence)) == answer


def test_a_bridge_named_by_the_next_passage_does_not_prove_the_hop_before() -> None:
    assert RIVET.answer in STEEL.quote
    assert ANSWERS.read(CHAIN.question, f"{STEEL.quote}\n{COATING.quote}") == REFUSAL


@given(held=st.sets(st.sampled_from(CHAIN.supporting)), query=st.sampled_from([CHAIN.question, REST_AFTER_RIVET]))
def test_one_sub_question_closes_the_gap_of_a_prefix_or_a_hop(held: set[SupportingFact], query: str) -> None:
    evidence = " ".join(fact.quote for fact in held)
    corpus = " ".join(fact.quote for fact in CHAIN.supporting)
    score, next_query = ANSWERS.judge(query, evidence)
    assert (ANSWERS.read(query, evidence) == "zinc") == (score == 2)
    if score == 1:
        sub_answer = ANSWERS.read(next_query, corpus)
        assert sub_answer != REFUSAL
        answer = ANSWERS.read(query, f"{evidence}\n{resolved(next_query, sub_answer)}")
        assert (answer == "zinc") == _is_closable(query, held)


def _is_closable(query: str, held: set[SupportingFact]) -> bool:
    hops = CHAIN.supporting if query == CHAIN.question else CHAIN.supporting[1:]
    have = [fact in held for fact in hops]
    is_prefix = have[: sum(have)] == [True] * sum(have)
    return is_prefix or sum(have) == len(have) - 1


def test_replies_follow_the_kind_of_the_prompt() -> None:
    def say(messages: list[prompts.Message]) -> tuple[str, float | None]:
        reply = ANSWERS.reply(parse_prompt(messages))
        return reply.text, reply.p_yes

    text, p_yes = say(judge_prompts.judge_messages(COMPARED.question, OAK.quote))
    assert ASH.question in text  # not escaped
    assert p_yes is None
    verdict = json.loads(text)
    assert verdict.keys() == set(judge_prompts.JUDGE_SCHEMA["required"])  # type: ignore[call-overload]
    assert (verdict["score"], verdict["next_query"]) == (1, ASH.question)
    assert len(verdict["reason"].split()) <= 20

    assert say(judge_prompts.needed_messages(CHAIN.question, RIVET.quote)) == ("yes", P_YES_WHEN_TRUE)
    assert say(judge_prompts.needed_messages(CHAIN.question, "nothing")) == ("no", P_YES_WHEN_FALSE)
    assert say(judge_prompts.alone_messages(CHAIN.question, RIVET.quote)) == ("no", P_YES_WHEN_FALSE)
    assert say(judge_prompts.alone_messages(RIVET.question, RIVET.quote)) == ("yes", P_YES_WHEN_TRUE)
    assert say(judge_prompts.sub_question_messages(CHAIN.question, RIVET.quote)) == (REST_AFTER_RIVET, None)
    assert say(judge_prompts.sub_question_messages(CHAIN.question, "nothing")) == ("", None)
    assert say(prompts.reader_messages(RIVET.question, RIVET.quote)) == ("R7", None)
    assert say([("system", "Be kind."), ("user", CHAIN.question)]) == (REFUSAL, None)


@pytest.mark.parametrize(
    ("query", "by_heart"), [(CHAIN.question, "zinc"), (NOBODY_KNOWS.question, REFUSAL), ("Who asks this?", REFUSAL)]
)
def test_closed_book_refuses_unless_the_answers_are_known_by_heart(query: str, by_heart: str) -> None:
    prompt = parse_prompt(prompts.closed_book_messages(query))
    assert ANSWERS.reply(prompt).text == REFUSAL
    assert ANSWERS.reply(prompt, knows_by_heart=True).text == by_heart


def test_where_two_rows_ask_the_same_either_fact_will_do() -> None:
    quotes = ("R7 joins class K.", "Class K takes R7.")
    facts = [fact("a.md", quote, RIVET.question, "R7") for quote in quotes]
    answers = ScriptedAnswers([question(each.quote, RIVET.question, "R7", each) for each in facts])
    for quote in quotes:
        assert answers.judge(RIVET.question, quote) == (2, "")
        assert answers.read(RIVET.question, quote) == "R7"


def test_triples_are_drawn_from_the_facts_that_a_passage_quotes() -> None:
    passage = "# Rivet R7\n\nRivet R7 is forged from\nsteel S2. It is old."
    prompt = parse_prompt(triples_messages(passage))
    assert json.loads(ANSWERS.reply(prompt).text) == {"triples": [["Rivet R7", "is forged from steel", "S2"]]}
    assert json.loads(ANSWERS.reply(parse_prompt(triples_messages("橡木密度为720。"))).text) == {
        "triples": [["橡木密度为", "is", "720"]]
    }
