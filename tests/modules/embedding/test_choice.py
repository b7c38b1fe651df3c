"""``embeddings: auto`` takes the model that was measured to find the documents' script."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scripts import best_right, read_pairs
from judgetree.modules.embedding.choice import MODELS, EmbedderByScript, choose_model, unknown_scripts, unknown_text
from judgetree.modules.index.index import Index
from judgetree.modules.language.scripts import script_shares

from ..fake_embeddings import BagOfWordsEmbedder

PAIRS = read_pairs()
PASSAGES = {language: [pair["passage"] for pair in pairs] for language, pairs in PAIRS.items()}


@pytest.mark.parametrize("language", PAIRS)
def test_a_language_gets_the_model_that_finds_most(language: str) -> None:
    text = "\n".join(PASSAGES[language])
    (script,) = script_shares([text])
    found = {model: best_right(model, PAIRS[language]) for model in ("local:minilm", "local:use")}
    if script in MODELS:
        assert found[choose_model([text]).model] == max(found.values()) >= 7
        assert unknown_scripts(choose_model([text]).model, [text]) == []
    else:
        assert max(found.values()) <= 4  # nor does the other model find them
        assert unknown_scripts(choose_model([text]).model, [text]) == [script]


@pytest.mark.parametrize(
    ("texts", "model", "why"),
    [
        ([], "local:minilm", "no letters"),
        (["12 + 34 = 46 ⁂"], "local:minilm", "no letters"),
        (["abc " * 96, "насос" * 3], "local:minilm", "95 % English"),
        (["abc " * 90, "насос" * 6], "local:use", "90 % English, 10 % Cyrillic"),
        ([*PASSAGES["en"], *PASSAGES["en"], PASSAGES["fr"][0]], "local:minilm", "96 % English"),
        ([*PASSAGES["en"], *PASSAGES["fr"]], "local:use", "52 % Latin other than English, 48 % English"),
        ([*PASSAGES["el"]], "local:minilm", "100 % Greek"),
        (["\ufe8d\ufedf\ufeb4\ufefc\ufee1"], "local:use", "100 % Arabic"),
        (["⽔⼈"], "local:use", "100 % Chinese"),
        (["The Café Zoë and Peña are in the old town of Århus, as it was."], "local:minilm", "100 % English"),
    ],
)
def test_a_mixed_collection_is_decided_by_its_letters(texts: list[str], model: str, why: str) -> None:
    choice = choose_model(texts)
    assert (choice.model, choice.why) == (model, why)


def test_what_is_told_of_an_unknown_script_names_a_model_that_knows_it() -> None:
    assert "JUDGETREE_EMBEDDINGS set to local:use" in unknown_text("local:minilm", ["Thai"])
    assert "openai:text-embedding-3-small" in unknown_text("local:minilm", ["Thai", "Greek"])
    assert unknown_scripts("openai:model", PASSAGES["el"]) == []


def test_a_collection_keeps_its_model_and_an_unknown_script_is_told_once(index: Index, docs: Path) -> None:
    index.embed_model = EmbedderByScript(BagOfWordsEmbedder)
    (docs / "en.txt").write_text("\n".join(PASSAGES["en"]))
    assert index.get_index_done().notes == ("embedder local:minilm, since the letters are 100 % English",)
    (docs / "th.txt").write_text("\n".join(PASSAGES["th"]), encoding="utf-8")
    (note,) = index.get_index_done().notes
    assert note.startswith("local:minilm does not know Thai: ")
    (docs / "th.txt").write_text("\n".join(PASSAGES["th"][:6]), encoding="utf-8")
    assert index.get_index_done().notes == ()
    (docs / "el.txt").write_text("\n".join(PASSAGES["el"]), encoding="utf-8")
    assert len(index.get_index_done().notes) == 1
    assert index.info().embedders == {"dense": "local:minilm"}
    assert index.info().told_scripts == ["Greek", "Thai"]
