"""Sources of public data sets: addresses, sizes and citations, as given by their authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .registry import DATASETS

_HOTPOTQA = (
    "Yang et al. (2018): HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering. EMNLP. "
    "https://arxiv.org/abs/1809.09600"
)
_TWO_WIKI = (
    "Ho et al. (2020): Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of Reasoning Steps. COLING. "
    "https://aclanthology.org/2020.coling-main.580"
)
_MUSIQUE = (
    "Trivedi et al. (2022): MuSiQue: Multihop Questions via Single-hop Question Composition. TACL. "
    "https://arxiv.org/abs/2108.00573"
)
_BEIR = (
    "Thakur et al. (2021): BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models. "
    "NeurIPS Datasets and Benchmarks. https://arxiv.org/abs/2104.08663. Cite the set's own paper beside it."
)
_CAST = (
    "Dalton, Xiong and Callan (2020): TREC CAsT 2019: The Conversational Assistance Track Overview. "
    "https://arxiv.org/abs/2003.13624"
)
_CANARD = (
    "Elgohary, Peskov and Boyd-Graber (2019): Can You Unpack That? Learning to Rewrite Questions-in-Context. EMNLP. "
    "https://aclanthology.org/D19-1605"
)
_QUAC = "Choi et al. (2018): QuAC: Question Answering in Context. EMNLP. https://arxiv.org/abs/1808.07036"
_MTRAG = (
    "Katsis et al. (2025): MTRAG: A Multi-Turn Conversational Benchmark for Evaluating Retrieval-Augmented Generation "
    "Systems. TACL. https://doi.org/10.1162/TACL.a.19"
)
_MUSIQUE_BY_HAND = (
    "Its authors keep it where only a browser gets it: open "
    "https://drive.google.com/file/d/1tGdADlNjWFaHLeZZGShh2IRcpO6Lv24h/view and download musique_v1.0.zip."
)
_BEIR_MEMBERS = ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv")


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """One public data set; its split is the one usually reported unless its name says otherwise."""

    format: str
    """Name of its format in ``DATASETS``."""
    target: str
    """Name of the file, or for BEIR the folder, to create."""
    size: str
    """Questions, documents and known bytes, in words."""
    citation: str
    homepage: str
    licence: str
    url: str = ""
    """Address of the file or zip archive; ``""`` if only a browser can get it."""
    members: tuple[str, ...] = ()
    """Files to take out of the archive, as patterns for path ends; one pattern if the target is a file."""
    sha256: str = ""
    """SHA-256 of the file at ``url``; ``""`` if it changes or is unknown."""
    md5: str = ""
    """MD5 of the file at ``url``, if its authors publish it."""
    max_bytes: int = 2_000_000_000
    """Limit of a download from ``url`` or a mirror; an archive may unpack to 20 times as much."""
    by_hand: str = ""
    """Instructions for a browser, if they differ from opening ``url``."""

    @property
    def is_folder(self) -> bool:
        """Whether the target is a folder."""
        return len(self.members) > 1


def _source(format: str, **facts: str | int | tuple[str, ...]) -> DatasetSource:
    home = {"homepage": DATASETS[format].homepage, "licence": DATASETS[format].licence}
    return DatasetSource(format=format, **{**home, **facts})  # type: ignore[arg-type]


def _beir(name: str, questions: str, documents: str, md5: str, homepage: str) -> DatasetSource:
    return _source(
        "beir",
        target=name,
        size=f"{questions} questions in the split test, {documents} documents",
        citation=_BEIR,
        homepage=homepage,
        url=f"https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/{name}.zip",
        members=_BEIR_MEMBERS,
        md5=md5,
    )


_NQ = "https://ai.google.com/research/NaturalQuestions"
_NFCORPUS = "https://www.cl.uni-heidelberg.de/statnlpgroup/nfcorpus/"

SOURCES: Mapping[str, DatasetSource] = {
    "hotpotqa": _source(
        "hotpotqa",
        target="hotpot_dev_distractor_v1.json",
        size="7,405 questions with ten paragraphs each, 46 MB",
        citation=_HOTPOTQA,
        url=DATASETS["hotpotqa"].download,
        sha256="4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea",
        max_bytes=50_000_000,
    ),
    "hotpotqa-train": _source(
        "hotpotqa",
        target="hotpot_train_v1.1.json",
        size="90,447 questions with ten paragraphs each, 566 MB",
        citation=_HOTPOTQA,
        url="https://curtis.ml.cmu.edu/datasets/hotpot/hotpot_train_v1.1.json",
        sha256="26650cf50234ef5fb2e664ed70bbecdfd87815e6bffc257e068efea5cf7cd316",
        max_bytes=600_000_000,
    ),
    "2wiki": _source(
        "2wiki",
        target="2wikimultihopqa_dev.json",
        size="12,576 questions with ten paragraphs each; the archive holds all splits",
        citation=_TWO_WIKI,
        url=DATASETS["2wiki"].download,
        members=("dev.json",),
    ),
    "2wiki-train": _source(
        "2wiki",
        target="2wikimultihopqa_train.json",
        size="167,454 questions with ten paragraphs each; the archive holds all splits",
        citation=_TWO_WIKI,
        url=DATASETS["2wiki"].download,
        members=("train.json",),
    ),
    "musique": _source(
        "musique",
        target="musique_ans_v1.0_dev.jsonl",
        size="2,417 questions with twenty paragraphs each; the archive holds all splits",
        citation=_MUSIQUE,
        members=("musique_ans_v1.0_dev.jsonl",),
        by_hand=_MUSIQUE_BY_HAND,
    ),
    "musique-train": _source(
        "musique",
        target="musique_ans_v1.0_train.jsonl",
        size="19,938 questions with twenty paragraphs each; the archive holds all splits",
        citation=_MUSIQUE,
        members=("musique_ans_v1.0_train.jsonl",),
        by_hand=_MUSIQUE_BY_HAND,
    ),
    "beir-scifact": _beir(
        "scifact", "300", "5,183", "5f7d1de60b170fc8027bb7898e2efca1", "https://github.com/allenai/scifact"
    ),
    "beir-nfcorpus": _beir("nfcorpus", "323", "3,633", "a89dba18a62ef92f7d323ec890a0d38d", _NFCORPUS),
    "beir-fiqa": _beir(
        "fiqa", "648", "57,638", "17918ed23cd04fb15047f73e6c3bd9d9", "https://sites.google.com/view/fiqa/"
    ),
    "beir-scidocs": _beir(
        "scidocs", "1,000", "some 25,000", "38121350fc3a4d2f48850f6aff52e4a9", "https://allenai.org/data/scidocs"
    ),
    "beir-trec-covid": _beir(
        "trec-covid",
        "50",
        "some 171,000",
        "ce62140cb23feb9becf6270d0d1fe6d1",
        "https://ir.nist.gov/covidSubmit/index.html",
    ),
    "beir-nq": _beir("nq", "3,452", "some 2.7 million", "d4d3d2e48787a744b6f6e691ff534307", _NQ),
    "beir-hotpotqa": _beir(
        "hotpotqa", "7,405", "some 5.2 million", "f412724f78b0d91183a0e86805e16114", "https://hotpotqa.github.io"
    ),
    "cast-2019": _source(
        "cast",
        target="cast_2019",
        size="479 questions in 50 dialogues; the archive holds all years",
        citation=_CAST,
        url="https://github.com/daltonj/treccastweb/archive/refs/heads/master.zip",
        max_bytes=500_000_000,
        members=("evaluation_topics_v1.0.json", "evaluation_topics_annotated_resolved_v1.0.tsv"),
    ),
    "canard": _source(
        "canard",
        target="canard_test.json",
        size="5,571 questions",
        citation=_CANARD,
        by_hand=f"Open {DATASETS['canard'].homepage} in a browser, download the release and take its test.json.",
    ),
    "quac": _source(
        "quac",
        target="quac_val_v0.2.json",
        size="7,354 questions in 1,000 dialogues, a section each",
        citation=_QUAC,
        url=DATASETS["quac"].download,
        max_bytes=20_000_000,
    ),
    "quac-train": _source(
        "quac",
        target="quac_train_v0.2.json",
        size="83,568 questions in 11,567 dialogues, a section each",
        citation=_QUAC,
        url="https://s3.amazonaws.com/my89public/quac/train_v0.2.json",
        max_bytes=150_000_000,
    ),
    "mtrag": _source(
        "mtrag",
        target="mtrag",
        size="842 questions in 110 dialogues; the archive also holds the corpora, zipped, which are not taken out",
        citation=_MTRAG,
        url="https://github.com/IBM/mt-rag-benchmark/archive/refs/heads/main.zip",
        members=(
            "mtrag-human/generation_tasks/reference.jsonl",
            "mtrag-human/retrieval_tasks/*/*_rewrite.jsonl",
        ),
    ),
}
"""By the name that ``judgetree eval fetch`` takes."""
