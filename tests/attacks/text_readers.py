"""How the functions are called that read a text of a model, a user or a document and need more than the text.

Those that need nothing else are found by themselves (``reading_functions.called_with_a_text``).
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from bs4 import Tag
from langchain_core.documents import Document
from pydantic import BaseModel

from judgetree.app.commands.index import parsed_index_params
from judgetree.app.server.chat.parameters import named_in_header
from judgetree.app.server.chat.requests import MessagePart
from judgetree.app.server.knowledge.framing import line_event, text_events
from judgetree.app.server.serving.errors import as_api_error, hides_causes
from judgetree.evaluation.metrics.answers import answer_tokens, normalize_answer
from judgetree.evaluation.metrics.conversation import _words as metric_words
from judgetree.evaluation.metrics.numbers import number_match
from judgetree.evaluation.question_files.cell_texts import cell_texts, question_text
from judgetree.evaluation.reports.failures import _name_in
from judgetree.graphs.drawing.decisive import decisive_sentence
from judgetree.graphs.neighbourhood.words import _as_written
from judgetree.graphs.tree.documents import json_text
from judgetree.modules.addresses import Address
from judgetree.modules.calls.stops import StopTextFilter
from judgetree.modules.calls.thinking import ThinkingText, split_thinking, whole_text
from judgetree.modules.calls.tokens import beginning
from judgetree.modules.config.answer_form import AnswerForm
from judgetree.modules.config.typed_values import names_in
from judgetree.modules.digests import canonical_json
from judgetree.modules.embedding.refusals import fewer_texts, is_text_too_long, refuses_format
from judgetree.modules.errors import LoadingError
from judgetree.modules.index.file_parsers import PARSERS, LoadLimits, parse_file
from judgetree.modules.index.parser_process import needs_process
from judgetree.modules.index.parsers.html import parse_html
from judgetree.modules.index.parsers.html_hidden import hidden_from_speech
from judgetree.modules.index.parsers.html_sheets import sheet_rules
from judgetree.modules.index.parsers.html_styles import style_of_values
from judgetree.modules.index.parsers.html_text import lines_of
from judgetree.modules.index.parsers.markdown import parse_markdown
from judgetree.modules.index.parsers.pdf.directions import in_order
from judgetree.modules.index.parsers.pdf.lines import joined_lines
from judgetree.modules.index.parsers.pdf.words import MAX_PLACED, Word
from judgetree.modules.json_objects import object_spans
from judgetree.modules.judge.asker import question_in
from judgetree.modules.judge.contract import sub_question_problem, usable_question
from judgetree.modules.judge.gold import ALSO_KEYS, also_of
from judgetree.modules.judge.insert_block import quotation_in
from judgetree.modules.language.folding import folded
from judgetree.modules.language.letters import cjk_share
from judgetree.modules.language.scripts import script_shares
from judgetree.modules.language.search_form import words_of_query, words_of_text
from judgetree.modules.llm.json_reply import parse_json_reply
from judgetree.modules.llm.one_prompt import messages_of, one_prompt
from judgetree.modules.llm.wire.adaptations import is_another
from judgetree.modules.llm.wire.error_words import (
    MOST_READ,
    is_about_one_prompt,
    is_moderated,
    setup_status,
    without_repeats,
    words_of,
)
from judgetree.modules.llm.wire.events import Event, said_by
from judgetree.modules.llm.wire.refusals import refused_in
from judgetree.modules.memory.rewrites import read_rewrite
from judgetree.modules.reader.answer_forms import form_texts
from judgetree.modules.reader.evidence import as_material, foreign_addresses, split_evidence
from judgetree.modules.reader.multistep_prompts import (
    Observed,
    parse_action,
    parse_draft,
    parse_follow_up,
    parse_thought,
)
from judgetree.modules.reader.prompts import parse_note, parse_scored
from judgetree.modules.reader.refusals import is_refusal
from judgetree.modules.reader.tagged_prompts import parse_tagged, search_r1_messages
from judgetree.modules.reader.tool_inputs import text_within, tool_input
from judgetree.modules.reading.delimited_text import SEPARATORS, fitting_separator, separator_of, table_rows
from judgetree.modules.reading.json_rows import json_line_rows, json_rows
from judgetree.modules.reading.python_values import python_value
from judgetree.modules.reading.rich_strings import without_escapes
from judgetree.modules.reading.scripts import with_marks
from judgetree.modules.reading.shown_numbers import shown_value
from judgetree.modules.redaction import starred
from judgetree.modules.settings import Settings
from judgetree.modules.tools.calculator import calculate

Reader = Callable[[str], object]


class _Refused(Exception):
    status_code = 400


class _AnyReply(BaseModel):
    reason: str = ""
    next_query: str = ""


_REWRITE_TOKENS = Settings.model_fields["max_rewrite_tokens"].default


def _document(text: str) -> Document:
    return Document(page_content=text[:4_000], metadata={"chunk_id": "c", "source": text[:200], "title": text[:200]})


def _page(markup: str) -> None:
    list(parse_html(markup.encode("utf-8", "replace")))


def _stopped(text: str) -> None:
    until = StopTextFilter(("\nObservation:", "\n\n", "User:"))
    for at in range(0, len(text), len(text) // 100 + 1):
        until.feed(text[at : at + len(text) // 100 + 1])
    until.finish()


def _on_a_line(text: str, *, backwards: bool) -> None:
    """Read the letters of a text as they would stand on a line; a page with more of them is not placed."""
    text = text[:MAX_PLACED]
    words = [
        Word(text=char, turn=0, left=at, right=at + 1, base=0, size=1, blanks=at // 7) for at, char in enumerate(text)
    ]
    in_order(words, backwards=backwards)


def _parsed_here(text: str) -> None:
    """Parse a text as each format that needs no process of its own."""
    for suffix in PARSERS:
        if not needs_process(suffix, len(text)):
            with suppress(LoadingError):
                parse_file(suffix, text.encode("utf-8", "replace"), LoadLimits())


_REQUEST: dict[str, object] = {
    "model": "scripted",
    "messages": [{"role": "system", "content": ""}],
    "stream": True,
    **dict.fromkeys(("temperature", "max_tokens", "stop", "logprobs", "chat_template_kwargs", "stream_options"), 1),
    "response_format": {"type": "json_schema"},
}


def _tables(text: str) -> None:
    """Read a text as a table by each separator, and by the one that fits."""
    for separator in (*SEPARATORS, fitting_separator(text), separator_of(text, {"question"})):
        with suppress(LoadingError):
            deque(table_rows(text, separator), maxlen=0)


def _in_pieces(text: str) -> None:
    growing = ThinkingText()
    for at in range(0, len(text), 50):
        growing.feed(text[at : at + 50])
    growing.finish()


def _without_addresses(text: str) -> None:
    token = hides_causes.set(True)
    try:
        as_api_error(LoadingError(text))
    finally:
        hides_causes.reset(token)


READERS: Mapping[str, Reader] = {
    "modules.index.parsers.html_hidden.hidden_from_speech": lambda text: hidden_from_speech(
        Tag(name="i", attrs={"class": text})
    ),
    "app.commands.index.parsed_index_params": parsed_index_params,
    "app.server.chat.parameters.named_in_header": lambda text: named_in_header([text]),
    "app.server.chat.requests.MessagePart.kind": lambda text: MessagePart(type=text).kind,
    "app.server.serving.errors._shown": _without_addresses,
    "app.server.knowledge.framing.line_event": lambda text: line_event("answer", text),
    "app.server.knowledge.framing.text_events": lambda text: list(text_events("answer", text)),
    "evaluation.question_files.cell_texts.cell_texts": lambda text: cell_texts(text, "|"),
    "evaluation.question_files.cell_texts.question_text": question_text,
    "evaluation.reports.failures._name_in": _name_in,
    "modules.config.typed_values.names_in": names_in,
    "evaluation.metrics.conversation._words": lambda text: metric_words(text, "en"),
    **dict.fromkeys(
        (f"evaluation.metrics.numbers.{name}" for name in ("_gives", "_only_number", "_numbers_in", "_value")),
        lambda text: number_match(text, [text, "3"]),
    ),
    "graphs.drawing.decisive.decisive_sentence": lambda text: decisive_sentence(text, query=text, reason=text),
    "graphs.neighbourhood.words._as_written": lambda text: _as_written(text[:60], text),
    "graphs.tree.documents.json_text": lambda text: json_text({"text": text}),
    "modules.addresses.Address.secrets": lambda text: Address(text).secrets(),
    "modules.addresses.Address.has_cut_secret": lambda text: Address(f"redis://{text}@h").has_cut_secret,
    "modules.llm.wire.adaptations.is_another": lambda text: is_another(text, text),
    "modules.llm.wire.events.said_by": lambda text: said_by(Event("error", text)),
    "modules.calls.stops.StopTextFilter.feed": _stopped,
    "modules.reading.quotations.Quotations.feed": lambda text: split_thinking(f"{text}</think>{text}"),
    "modules.calls.thinking.ThinkingText.feed": lambda text: whole_text(text, ("\n\n",)).new_everything(),
    "modules.reading.thinking_forms.ThinkingForm._begin": lambda text: split_thinking(
        f"<thinking>{text}</thinking>{text}"
    ),
    "modules.reading.thinking_forms.ThinkingForm._bare": lambda text: _in_pieces(
        f"analysisA{text}assistantfinal{text}"
    ),
    "modules.reading.thinking_forms.ThinkingForm.unfinished_at": lambda text: _in_pieces(f"[THINK]{text}"),
    "modules.reading.thinking_forms.ThinkingForm.__init__": split_thinking,
    "modules.calls.thinking._quoting_objects": lambda text: split_thinking(f'{text}{{"{text}', is_json=True),
    "modules.reading.harmony.Harmony._begun": lambda text: split_thinking(
        f"<|channel|>final<|message|>{text}<|channel|>final{text}<|message|>{text}"
    ),
    "modules.reading.harmony.Harmony.feed": lambda text: _in_pieces(
        f"<|channel|>analysis<|message|>{text}<|channel|>final<|message|>{text}"
    ),
    "modules.reading.harmony.Harmony._said": lambda text: split_thinking(
        f"<|channel|>analysis<|message|>{text}<|end|>{text}<|end|>{text}<|channel|>final<|message|>{text}"
    ),
    "modules.reading.harmony.Harmony.finish": lambda text: split_thinking(
        f"<|channel|>analysis<|message|>{text}<|end|>{text}"
    ),
    "modules.calls.tokens.beginning": lambda text: beginning(text, 1_000),
    "modules.json_objects.object_at": lambda text: list(object_spans(text)),
    "modules.embedding.refusals.fewer_texts": lambda text: fewer_texts(_Refused(text), [text] * 64),
    "modules.embedding.refusals.is_text_too_long": lambda text: is_text_too_long(_Refused(text), [text]),
    "modules.embedding.refusals.refuses_format": lambda text: refuses_format(_Refused(text), [text]),
    "modules.index.file_parsers.parse_file": _parsed_here,
    "modules.index.parsers.markdown._headings": lambda text: list(parse_markdown(text.encode("utf-8", "replace"))),
    "modules.index.parsers.html_formulas._fraction_steps": lambda text: _page(
        f"<math><mfrac linethickness='{text}'><mn>1</mn><mn>2</mn></mfrac></math>"
    ),
    "modules.index.parsers.html_katex._rows": lambda text: _page(
        f"<b class=msupsub><b class=vlist><b style='{text}'><b style='{text}'></b>6</b></b></b>"
    ),
    "modules.index.parsers.html_sheets.sheet_rules": sheet_rules,
    "modules.index.parsers.html_styles._is_smaller": lambda text: style_of_values(
        {"vertical-align": "top", "font-size": text}
    ),
    "modules.index.parsers.html_styles._ems": lambda text: style_of_values({"vertical-align": text}),
    "modules.index.parsers.html_text.HtmlText._write": lambda text: list(lines_of(text)),
    "modules.index.parsers.pdf.directions._units": functools.partial(_on_a_line, backwards=True),
    "modules.index.parsers.pdf.directions._with_marks": functools.partial(_on_a_line, backwards=False),
    "modules.index.parsers.pdf.lines._mended": lambda text: joined_lines((f"{each}-", False) for each in text.split()),
    "modules.reading.rich_strings.without_escapes": without_escapes,
    "modules.reading.scripts._marked": lambda text: with_marks([("x", ""), (text, "^"), (text, "")]),
    "modules.judge.contract.sub_question_problem": lambda text: sub_question_problem(text, text[:-1]),
    "modules.judge.gold.also_of": lambda text: also_of({ALSO_KEYS: text}, "key"),
    "modules.judge.insert_block.quotation_in": lambda text: quotation_in(text, f"{text[:-9]} no"),
    "modules.digests._shown": canonical_json,
    "modules.language.folding.folded": folded,
    "modules.language.scripts.script_shares": lambda text: script_shares([text]),
    "modules.language.letters.cjk_share": cjk_share,
    "modules.language.search_form.words_of_query": lambda text: words_of_query(text, "written"),
    "modules.language.search_form.words_of_text": words_of_text,
    "modules.llm.one_prompt.one_prompt": lambda text: messages_of(one_prompt([("system", text), ("user", text)])),
    "modules.llm.wire.error_words.is_about_one_prompt": lambda text: is_about_one_prompt(_Refused(text)),
    "modules.llm.wire.error_words.setup_status": lambda text: setup_status(_Refused(text)),
    "modules.llm.wire.error_words.is_moderated": lambda text: is_moderated(text[:MOST_READ]),
    "modules.llm.wire.error_words.without_repeats": lambda text: without_repeats(text[:MOST_READ], {"input": [text]}),
    "modules.llm.wire.error_words._texts_in": lambda text: words_of(ValueError({"raw": text})),
    "modules.llm.wire.error_words._plain": lambda text: without_repeats(text[:MOST_READ], {"prompt": text}),
    "modules.llm.wire.refusals.refused_in": lambda text: refused_in(text, _REQUEST, param=text[:200]),
    "modules.llm.wire.refusals._limit_named_in": lambda text: refused_in(text, _REQUEST, is_named=True),
    "modules.llm.wire.refusals._format_in": lambda text: refused_in(text, _REQUEST, is_server_error=True),
    "modules.reader.answer_forms.form_texts": lambda text: form_texts(AnswerForm.model_construct(instructions=text)),
    "modules.memory.rewrites._without_chatter": lambda text: read_rewrite(text, "Who?", max_tokens=_REWRITE_TOKENS),
    "modules.reader.evidence.foreign_addresses": lambda text: foreign_addresses(text, text[:-9]),
    "modules.reader.evidence.split_evidence": lambda text: split_evidence(text, [_document(text)]),
    "modules.reader.multistep_prompts.parse_action": lambda text: parse_action(text, ("calculator", "web")),
    "modules.reader.refusals._refuses_in_english": is_refusal,
    "modules.reader.tagged_prompts._parsed": parse_tagged,
    "modules.reader.tool_inputs.tool_input": lambda text: (text_within(text, "["), tool_input(text, "(")),
    "modules.reading.delimited_text.table_rows": _tables,
    "modules.reading.json_rows.json_rows": lambda text: list(json_rows(text, {"question"}, ["id"])),
    "modules.reading.json_rows.json_line_rows": lambda text: list(json_line_rows(text)),
    "modules.reading.python_values._Reader._next": python_value,
    "modules.reading.python_values._unquoted": lambda text: python_value(f"['{text}']"),
    "modules.reading.shown_numbers._formatted": lambda text: shown_value(1234.5, text),
    "modules.redaction._hides": lambda text: starred(text, ["hunter2", "s3cr3t-of-mine", "pw"]),
    "modules.tools.calculator.calculate": calculate,
    "modules.tools.calculator._parsed": calculate,
}
"""How a reader is called with one text."""

CHAINS: Mapping[str, Reader] = {
    "a reply of the reader": lambda text: is_refusal(split_thinking(text)[0]),
    "a note of a passage": lambda text: parse_note(split_thinking(text)[0]),
    "a scored answer": lambda text: is_refusal(parse_scored(split_thinking(text)[0]).text),
    "a thought, searched for and shown": lambda text: as_material(parse_thought(split_thinking(text)[0]).text),
    "a follow-up question": lambda text: parse_follow_up(split_thinking(text)[0]),
    "a draft": lambda text: parse_draft(split_thinking(text)[0]),
    "an action and its result": lambda text: calculate(parse_action(split_thinking(text)[0], ("calculator",)).query),
    "a search between tags": lambda text: search_r1_messages(
        text, [Observed(query=parse_tagged(text).query, passages=text)]
    ),
    "a verdict and its sub-question": lambda text: usable_question(parse_json_reply(text, _AnyReply).next_query, text),
    "a small model's sub-question": lambda text: usable_question(question_in(split_thinking(text)[0]), "Who?"),
    "a rewrite": lambda text: read_rewrite(split_thinking(text)[0], text, max_tokens=_REWRITE_TOKENS),
    "an answer and its score": lambda text: (normalize_answer(text), answer_tokens(text, lang="zh")),
}
"""Readers one behind another, as a node of a graph calls them."""

_OWN = "reads what judgetree itself has written to its home, a store or a run's folder"
_SHORT = "reads a name, number, header or option, which is bounded before"
_PROCESS = "runs in the parser process, which is killed after its time"
_MAKES = "makes a pattern; the function that uses it is a reader"
_CALLED = "is the inner part of a reader, or waits for the network before it"

EXCUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "modules.calls.journal.call_of",
            "evaluation.rows.payments.Payments.paid",
            "evaluation.rows.opponents.opponents_in",
            "modules.trust.consent._read",
            "modules.trust.saved_names._address_in",
            "modules.calls.transcripts._call_of",
            "modules.transcripts.redis._rows_in",
            "graphs.savers.redis_saver.RedisSaver._with_metadata",
            "graphs.savers.redis_saver.RedisSaver._tuple_of",
            "graphs.savers.redis_saver.RedisSaver._write_of",
            "graphs.savers.redis_names.namespace_in",
            "graphs.savers.redis_names.id_in",
            "graphs.savers.redis_saver._in_order",
            "graphs.savers.redis_saver.RedisSaver._remove",
            "modules.extraction.cache.TripleCache.get_many",
            "modules.index.lite_files.CollectionFiles.metadata",
            "modules.index.lite_state.FilesWatch._physical",
            "modules.index.schema.CollectionInfo.from_json",
            "modules.judge.fits.read_fits",
            "modules.judge.thresholds.read_calibrations",
            "modules.memory.schema.to_turn",
            "modules.retriever.snapshot.Snapshot.entity",
            "modules.structure.passage_graph.PassageGraph.from_bytes",
            "modules.structure.passages._read",
            "modules.prebuilt.corpus._read_line",
            "graphs.conversation.turn.result.TurnResult.to_document",
            "graphs.rag.result.RagResult.to_document",
            "graphs.threads.mismatch._value",
            "graphs.tree.fork_record.Fork.of_fingerprint",
            "graphs.drawing.svg._render",
            "evaluation.labels.store.LabelStore._label_in",
            "evaluation.replay.recording_lines.RecordingFile.__init__",
            "evaluation.replay.recording_lines.RecordingFile.lines",
            "evaluation.reports.inline_svg._presentation_attributes",
            "evaluation.reports.inline_svg._drop_unused_ids",
            "evaluation.rows.code_version.git_revision",
            "evaluation.rows.store.RunStore._row",
            "evaluation.rows.trees.TreeStore._index",
            "evaluation.rows.trees.TreeStore._tree_of",
            "evaluation.scoring.scores.ScoreStore.read",
            "modules.config.config.Config.key",
            "app.server.keys.book._key",
            "modules.lazy_exports.lazy_exports",
            "modules.calls.kept.CallResult.from_json",
            "modules.calls.transcripts._reply_of",
            "modules.index.writer_lock._parsed",
            "app.server.runs.report.policy_of",
        ),
        _OWN,
    ),
    **dict.fromkeys(
        (
            "modules.calls.prices.Prices.of",
            "modules.trust.naming.needs_consent",
            "modules.trust.variables._warn_if_unknown",
            "modules.index.connection.client_arguments",
            "modules.index.schema.lock_number",
            "modules.index.schema.physical_of",
            "modules.index.schema.list_collections",
            "modules.tools.factory.create_tools",
            "graphs.tree.places.find_place",
            "evaluation.calibration.data.check_not_held_back",
            "evaluation.datasets.musique._hops",
            "evaluation.reports.report._cut_offs_in",
            "evaluation.runs.services.collection_of",
            "evaluation.sweeps.grid.Point.name",
            "app.server.safety.bodies.BodyLimits.body_of",
            "app.server.safety.hosts.HostCheck._is_own",
            "app.server.safety.hosts.HostCheck._is_same_site",
            "app.server.watching.request_log.request_id_of",
            "modules.structure.titles._file_title",
            "modules.network.keys.sendable_key",
            "modules.network.proxies._checked",
            "modules.network.proxies._status_of",
            "modules.network.proxies.is_direct",
        ),
        _SHORT,
    ),
    **dict.fromkeys(
        (
            "modules.index.parsers.html.parse_html",
            "modules.index.parsers.html_text.HtmlText._raised_steps",
            "modules.index.parsers.pdf.fields._place",
            "modules.index.parsers.pdf.letters.PageLetters.pieces",
            "modules.index.parsers.pdf.letters.PageLetters._are_blanks_written",
            "modules.index.row_parsers._parse_objects",
            "modules.index.file_parsers._parse_json",
            "modules.index.file_parsers._parse_jsonl",
            "modules.index.parser_process.ParserProcess._reply_in_time",
            "modules.index.parser_process.serve",
        ),
        _PROCESS,
    ),
    **dict.fromkeys(
        (
            "modules.redaction._base64_runs",
            "modules.redaction._pattern",
            "modules.storage.postgres.PostgresDatabase.__init__",
            "modules.calls.stops._any_of",
            "modules.reader.multistep_prompts._action_pattern",
            "modules.language.folding._table",
            "modules.language.scripts._patterns",
            "modules.llm.wire.refusals._word",
            "modules.llm.wire.refusals._asked_for",
        ),
        _MAKES,
    ),
    **dict.fromkeys(
        (
            "modules.embedding.replies.parse_reply",
            "modules.llm.wire.error_words.error_in_text",
            "modules.llm.openai_client.ReasoningChatOpenAI._agenerate",
            "modules.llm.openai_client.ReasoningChatOpenAI._astream",
            "modules.retriever.rerank._post",
            "modules.reading.plausible_numbers.RecordReader.validate_json",
            "modules.reading.regular_files.read_named_json",
            "modules.reading.yaml_files.read_yaml",
            "evaluation.question_files.file_rows._parsed",
            "evaluation.question_files.cell_texts._printed",
            "modules.retriever.web.SearxngSearch._parsed",
            "modules.reader.multistep_prompts._is_abbreviation",
            "modules.structure.phrases._starts_sentence",
            "modules.language.scripts._latin_language",
            "modules.tools.tool.LangChainTool._arguments",
            "graphs.drawing.decisive._quoted_place",
            "evaluation.datasets.standards_qa._parse",
            "app.labelling.server._Handler.do_POST",
            "modules.reading.quotations.Quotations._end_line",
            "modules.reading.quotations.Quotations._fence_end",
            "modules.reading.quotations._closing",
            "modules.calls.thinking.ThinkingText._advance",
            "modules.index.parsers.markdown._Seen.text",
            "modules.reading.scripts.with_marks",
            "modules.index.parsers.markdown._Seen._is_edited",
            "modules.index.parsers.markdown._Seen._edit_html",
        ),
        _CALLED,
    ),
    "modules.reader.refusals._refusing": "reads one sentence of the 2,000 characters that a reader of refusals takes",
    "modules.llm.wire.refusals._refused_in_sentence": "reads one sentence of the 4,000 characters that are read",
    "modules.llm.wire.refusals._limit_in": "reads one sentence of the 4,000 characters that are read",
    "modules.llm.wire.refusals._renamed_in": "reads one sentence of the 4,000 characters that are read",
    "modules.llm.wire.error_words._is_passage": "reads a quotation in the 4,000 characters that are read",
    "modules.llm.wire.error_words._without_values": "reads the 4,000 characters that are read",
    "modules.llm.wire.refusals._changed": "reads at most the 4,000 characters that are read",
    "modules.reader.refusals._main_clause": "reads one sentence of the 2,000 characters that it takes",
    "modules.reader.refusals._answers_still": "reads one sentence of the 2,000 characters that it takes",
    "modules.reader.refusals._is_title": "reads the 2,000 characters that a reader of refusals takes",
    "modules.reader.refusals._refuses_in_chinese": "reads the 2,000 characters that a reader of refusals takes",
    "modules.index.parsers.word.numbering.Numbering.label": "reads the format of one level, at most nine places long",
    "modules.reading.text_encoding._guessed": "reads a sample of at most 64 kB, by patterns of two characters",
    "modules.reading.text_encoding._letters": "reads a sample of at most 64 kB, by a pattern of two characters",
    "modules.language.folding._invisible": "reads single characters",
    "modules.structure.phrases.phrases_in": "loads a dictionary; its patterns and _names are checked by themselves",
    "modules.structure.phrases._nouns": "reads a run of at most 1,000 letters",
    "app.commands.new.new._check_name": "reads one word of a command line",
    "modules.memory.rewrites._unwrapped": "reads one line within the limit of a rewrite",
    "modules.index.parsers.pdf.letters.PageLetters._begins_text": "reads single characters",
    "modules.index.parsers.pdf.tables.is_number": "reads a cell, character by character",
    "modules.index.parsers.pdf.bands.begins_with_mark": "reads the first words of a line, digit by digit",
    "evaluation.reports.report._fenced": "finds runs of one character",
    **dict.fromkeys(
        ("app.server.page.bundle.bundle", "app.server.page.bundle._joined", "app.server.page.bundle._as_function"),
        "reads the page's own files",
    ),
    "modules.storage.redis._pool": "reads the digits of a setting's address",
    "evaluation.datasets.own_questions._QuestionReader.dataset": "looks for numbers of a fixed length",
}
"""Functions that need no reader of their own, with the reason."""


def is_excused(name: str) -> bool:
    """Return whether a function has a reason not to be called; ``app.scripted`` plays models in demonstrations."""
    return name in EXCUSED or name.startswith("app.scripted.")
