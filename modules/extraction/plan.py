"""What the extraction of the triples of a collection has to do, and what it is expected to cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..calls.prices import Cost, ModelUsage, Prices, load_prices
from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.tokens import message_tokens, shortened, text_tokens
from ..llm.cache import CacheableLLM
from ..reader.evidence import as_line
from ..structure.passages import Passage
from .cache import FILE_NAME, KeptTriples, TripleCache, TripleKeys
from .prompts import MOST_REPLY_TOKENS, triples_messages
from .replies import MOST_LETTERS, Extracted

MOST_PASSAGE_TOKENS = 4_000
"""Most tokens of a passage that are sent; of a longer one its middle is left out."""


@dataclass(frozen=True, kw_only=True)
class TripleModel:
    """The model that draws triples, its prompts and prices, and where the triples are kept.

    ::

        TripleModel(llm=llm, home=settings.home, at_once=16)
    """

    llm: CacheableLLM
    home: Path
    """The data folder, which has ``triples.sqlite`` and ``completions.sqlite``."""
    prompts: Prompts = DEFAULT_PROMPTS
    prices: Prices | None = None
    """None for those of the package and the data folder."""
    at_once: int = 8
    """Most passages in work."""


@dataclass(frozen=True, kw_only=True)
class ExtractionJob:
    """A text that the model is asked about, for one or more chunks that share it."""

    key: bytes
    text: str
    chunk_ids: tuple[str, ...]
    source: str
    """File of the first of the chunks."""


@dataclass(frozen=True, kw_only=True)
class ExtractionPlan:
    """What an extraction of triples has to do, and what it is expected to cost."""

    model: str
    made_by: str
    """SHA-256 of model, endpoint and prompt."""
    passages: int
    kept: Mapping[str, Extracted]
    """Triples that are there already, by chunk id."""
    asked: tuple[ExtractionJob, ...]
    """The texts to ask about, a call each."""
    prompt_tokens: int
    """Estimated tokens of the prompts."""
    reply_tokens: int
    """Expected tokens of the replies: as long, for the passage, as those that are kept, else as long as the passage."""
    cost: Cost
    """Expected cost; calls for replies that cannot be used are not counted."""

    @property
    def calls(self) -> int:
        """Number of calls to make."""
        return len(self.asked)

    def to_document(self) -> dict[str, object]:
        """Return the figures as plain data for ``json.dumps``."""
        return {
            "model": self.model,
            "passages": self.passages,
            "kept": len(self.kept),
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "reply_tokens": self.reply_tokens,
            "cost_usd": self.cost.usd,
        }


def passage_text(passage: Passage) -> str:
    """Return a passage as the model sees it: its title, unless the text begins with it, and its text.

    >>> passage_text(Passage(chunk_id="1", text="He was born in Oslo.", metadata={"title": "Bo Ek"}))
    'Bo Ek\\nHe was born in Oslo.'
    """
    title = passage.metadata.get("title")
    line = as_line(title)[:MOST_LETTERS] if isinstance(title, str) else ""
    text = passage.text if not line or passage.text.lstrip().startswith(line) else f"{line}\n{passage.text}"
    return shortened(text, MOST_PASSAGE_TOKENS)


def plan_extraction(passages: Iterable[Passage], model: TripleModel) -> ExtractionPlan:
    """Return what the extraction of the triples of these passages has to do; no call is made.

    ::

        plan = plan_extraction(passages_of(index), TripleModel(llm=llm, home=settings.home))
        print(plan.calls, plan.cost)
    """
    keys = TripleKeys(model.llm, model.prompts)
    texts: dict[bytes, str] = {}
    sharing: defaultdict[bytes, list[Passage]] = defaultdict(list)
    for passage in passages:
        key = keys.of(text := passage_text(passage))
        texts[key] = text
        sharing[key].append(passage)
    with TripleCache(model.home / FILE_NAME) as cache:
        found = cache.get_many(texts)
    asked = tuple(
        ExtractionJob(
            key=key,
            text=text,
            chunk_ids=tuple(each.chunk_id for each in sharing[key]),
            source=sharing[key][0].source,
        )
        for key, text in texts.items()
        if key not in found
    )
    prompt_tokens = sum(message_tokens(triples_messages(each.text, model.prompts)) for each in asked)
    reply_tokens = _expected_reply_tokens(asked, texts, found)
    return ExtractionPlan(
        model=model.llm.model,
        made_by=keys.made_by,
        passages=sum(map(len, sharing.values())),
        kept={each.chunk_id: kept.extracted for key, kept in found.items() for each in sharing[key]},
        asked=asked,
        prompt_tokens=prompt_tokens,
        reply_tokens=reply_tokens,
        cost=prices_of(model).cost_of(
            [
                ModelUsage(
                    model=model.llm.model,
                    kind="chat",
                    calls=len(asked),
                    estimated_calls=len(asked),
                    prompt_tokens=prompt_tokens,
                    completion_tokens=reply_tokens,
                )
            ]
        ),
    )


def _expected_reply_tokens(
    asked: Sequence[ExtractionJob], texts: Mapping[bytes, str], found: Mapping[bytes, KeptTriples]
) -> int:
    read = sum(text_tokens(texts[key]) for key in found)
    written = sum(kept.reply_tokens for kept in found.values())
    ratio = written / read if read and written else 1.0
    return sum(min(round(ratio * text_tokens(each.text)), MOST_REPLY_TOKENS) for each in asked)


def prices_of(model: TripleModel) -> Prices:
    """Return the prices of a model's calls."""
    return model.prices or load_prices(model.home)
