"""Which files make a prebuilt index: a small YAML file, or a folder in which they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..addresses import Address
from ..errors import LoadingError, SettingsError, faults_of
from ..reading.yaml_files import read_yaml

SPEC = "prebuilt:"
"""Start of the spec of a prebuilt index; the path of its YAML file or folder follows."""
YAML_NAME = "prebuilt.yaml"
BM25S_PARAMS = "params.index.json"
"""The file by which a folder of ``bm25s`` is known."""


class PrebuiltFiles(BaseModel):
    """The files of a prebuilt index, and how it is searched."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    corpus: Path = Field(description="JSON Lines of id and contents (title, line break, text), or id, title and text.")
    faiss: Path | None = Field(default=None, description="faiss index, whose row i is line i of the corpus.")
    bm25s: Path | None = Field(default=None, description="Folder that bm25s saved, whose document i is line i.")
    embeddings: Address | None = Field(
        default=None, description="Embedder of the queries, as in JUDGETREE_EMBEDDINGS, which is the default."
    )
    query_prefix: str = Field(default="", description='Text before each query, such as "query: " for E5.')
    normalize: bool = Field(default=False, description="Scale the vectors of queries to length 1.")
    stemmer: str | None = Field(
        default=None, description="Snowball stemmer of bm25s, or none; english if the saved words were stemmed."
    )
    stopwords: str | None = Field(
        default=None, description="Stop words of bm25s, or none; as saved, else english, which bm25s takes by itself."
    )
    search_type: Literal["dense", "sparse", "hybrid"] | None = Field(
        default=None, description="Search if none is asked for; hybrid if both indexes are there."
    )
    search_params: Mapping[str, Annotated[int, Field(ge=1)]] = Field(
        default={}, description="Parameters of faiss: nprobe of IVF, efSearch of HNSW."
    )

    @model_validator(mode="after")
    def _check_has_files(self) -> PrebuiltFiles:
        if self.faiss is None and self.bm25s is None:
            raise ValueError("name a faiss index, a bm25s folder, or both")
        return self


def is_prebuilt(given: object) -> bool:
    """Return whether a retriever is the spec of a prebuilt index.

    >>> is_prebuilt("prebuilt:wiki18"), is_prebuilt("my_package:Retriever")
    (True, False)
    """
    return isinstance(given, str) and given.startswith(SPEC)


def read_files(spec: str) -> PrebuiltFiles:
    """Return the files that a spec names, with absolute paths.

    A folder is read by its ``prebuilt.yaml``. Without one it has one ``.jsonl`` file, and at most one file
    ``.index`` or ``.faiss`` and one folder of ``bm25s``, itself or inside it.

    Raises:
        SettingsError: The YAML file has faults; the message lists them.
        LoadingError: The path does not exist, or its files leave open what is meant.
    """
    path = Path(spec.removeprefix(SPEC)).expanduser()
    if not spec.removeprefix(SPEC) or not path.exists():
        raise LoadingError(f"The prebuilt index {str(path)!r} does not exist. Give a YAML file or a folder.")
    if path.is_dir() and not (path / YAML_NAME).is_file():
        return _found_in(path.absolute())
    file = (path / YAML_NAME if path.is_dir() else path).absolute()
    content = read_yaml(file, what="prebuilt index")
    try:
        files = PrebuiltFiles.model_validate(content)
    except ValidationError as error:
        keys = ", ".join(PrebuiltFiles.model_fields)
        faults = "; ".join(faults_of(error))
        raise SettingsError(f"The prebuilt index {file} is not usable: {faults}. Keys: {keys}.") from error
    named = {name: getattr(files, name) for name in ("corpus", "faiss", "bm25s")}
    return files.model_copy(
        update={name: file.parent / each.expanduser() for name, each in named.items() if each is not None}
    )


def _found_in(folder: Path) -> PrebuiltFiles:
    corpora = [each for each in folder.glob("*.jsonl") if each.is_file()]
    graphs = [each for suffix in ("*.index", "*.faiss") for each in folder.glob(suffix) if each.is_file()]
    words = [each for each in (folder, *folder.iterdir()) if each.is_dir() and (each / BM25S_PARAMS).is_file()]
    if len(corpora) != 1 or len(graphs) > 1 or len(words) > 1 or not (graphs or words):
        raise LoadingError(
            f"The folder {folder} is no prebuilt index that explains itself: corpora *.jsonl: {_names(corpora)}; faiss "
            f"indexes *.index, *.faiss: {_names(graphs)}; folders of bm25s: {_names(words)}. Keep one of each kind, or "
            f"name them in {YAML_NAME}: corpus, faiss, bm25s."
        )
    return PrebuiltFiles(corpus=corpora[0], faiss=next(iter(graphs), None), bm25s=next(iter(words), None))


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(sorted(path.name for path in paths)) or "none"
