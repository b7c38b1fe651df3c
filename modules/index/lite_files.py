"""Collections of an embedded Milvus Lite as files: their columns are read and copied without a request for each page.

Milvus Lite keeps a flushed collection as one folder: ``schema.json``, ``manifest.json``, Parquet files of rows and an
index file for each of them and each dense field. It opens such a folder at the first request, so that a folder can be
made beside the open ones: a copy whose columns were never Python objects, and whose HNSW index is the old one with the
new vectors added. ``schema.json`` is written last; Lite does not see a folder without it.

Only a collection of one Parquet file without deletions is read so, as judgetree leaves it. Other programs may leave
others; for those ``open_files`` returns None, and requests do the work.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .schema import PK_FIELD, physical_of

if TYPE_CHECKING:
    import pyarrow as pa
    from milvus_lite.index.spec import IndexSpec
    from milvus_lite.storage.manifest import Manifest

GROWS_FROM = 1000
"""Least number of rows whose indexes grow: a second of CPU builds those of fewer, as if all had come at once."""
PARTITION = "_default"
_META = "$meta"
_SEQUENCE = "_seq"


@dataclass(frozen=True, kw_only=True)
class CollectionFiles:
    """The files of one physical collection."""

    home: Path
    manifest: Manifest
    data: Path | None
    """The Parquet file of all rows; None without rows."""

    def metadata(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield id and metadata of each row."""
        table = self.rows([PK_FIELD, _META])
        if table is not None:
            metadata = (json.loads(text or "{}") for text in table.column(_META).to_pylist())
            yield from zip(table.column(PK_FIELD).to_pylist(), metadata, strict=True)

    def rows(self, columns: list[str] | None = None) -> pa.Table | None:
        """Return the rows with these columns, all by default; None without rows."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - only there with Lite

        return None if self.data is None else pq.read_table(self.data, columns=columns)

    def index_file(self, field: str, index_type: str) -> Path | None:
        """Return the path of the index of a dense field, which may not exist; None without rows."""
        if self.data is None:
            return None
        from milvus_lite.index.files import index_sidecar_path  # noqa: PLC0415 - only there with Lite

        folder = self.home / "partitions" / PARTITION / "indexes"
        return Path(index_sidecar_path(str(folder), str(self.data), field, index_type, scalar=False))


def open_files(folder: Path, physical: str) -> CollectionFiles | None:
    """Return the files of a flushed collection; None if it has several Parquet files, or deletions."""
    from milvus_lite.storage.manifest import Manifest  # noqa: PLC0415 - only there with Lite

    home = folder / "collections" / physical
    if not (home / "manifest.json").is_file():  # dropped meanwhile
        return None
    manifest = Manifest.load(str(home))
    data = [(partition, path) for partition, paths in manifest.get_all_data_files().items() for path in paths]
    if (
        len(data) > 1
        or any(partition != PARTITION for partition, _ in data)
        or any(manifest.get_all_delta_files().values())
    ):
        return None
    path = home / "partitions" / PARTITION / data[0][1] if data else None
    return None if path is not None and not path.is_file() else CollectionFiles(home=home, manifest=manifest, data=path)


def join(
    old: CollectionFiles,
    new: CollectionFiles,
    removed: Collection[str],
    physical: str,
    *,
    rebuilt: Collection[str] = (),
) -> None:
    """Make the collection ``physical`` of the rows of ``old`` and ``new``, with the schema of ``new``.

    A row of ``new`` takes the place of the one of its id in ``old``; both have the same vectors, since an id stands for
    a text. Rows stand in the order of their ids, so that the same chunks make the same collection. If no other row of
    ``old`` goes, and there are many, the HNSW indexes grow, besides those of ``rebuilt`` fields; else Lite builds them
    when it opens the collection.
    """
    import pyarrow as pa  # noqa: PLC0415 - only there with Lite
    import pyarrow.compute as pc  # noqa: PLC0415
    from milvus_lite.storage.data_file import write_data_file  # noqa: PLC0415
    from milvus_lite.storage.manifest import Manifest  # noqa: PLC0415

    home = new.home.parent / physical
    manifest = Manifest(str(home))
    for spec in new.manifest.index_specs.values():
        manifest.set_index_spec(spec)
    tables = [table for table in (old.rows(), new.rows()) if table is not None]
    order, kept = _order(_ids(old), _ids(new), removed)
    if order.size:
        behind = pa.concat_tables(tables).take(order)
        places = pc.sort_indices(behind.column(PK_FIELD)).to_numpy().astype(np.int64)
        partition = home / "partitions" / PARTITION
        path = write_data_file(_numbered(behind.take(places)), str(partition), 1, behind.num_rows)
        manifest.add_data_file(PARTITION, path)
        manifest.current_seq = behind.num_rows
        if kept >= GROWS_FROM:
            made = CollectionFiles(home=home, manifest=manifest, data=partition / path)
            _grow_indexes(old, made, behind, places, besides=rebuilt)
    manifest.save()
    _make_visible(new.home, home, physical)


def drop_unfinished(folder: Path, name: str) -> None:
    """Remove the folders of collections behind ``name`` that ``join`` did not finish."""
    homes = [home.name for home in (folder / "collections").glob("*") if not (home / "schema.json").exists()]
    for physical in physical_of(homes, name):
        shutil.rmtree(folder / "collections" / physical)


def _ids(files: CollectionFiles) -> list[str]:
    rows = files.rows([PK_FIELD])
    return [] if rows is None else list(rows.column(PK_FIELD).to_pylist())


def _order(old: Sequence[str], new: Sequence[str], removed: Collection[str]) -> tuple[npt.NDArray[np.int64], int]:
    """Return which of the old rows and the new ones behind them to take, and how many old ones: 0 if some go."""
    places = {pk: place for place, pk in enumerate(old)}
    order = np.arange(len(old))
    behind: list[int] = []
    for place, pk in enumerate(new, start=len(old)):
        if pk in places:
            order[places.pop(pk)] = place
        else:
            behind.append(place)
    gone = [places[pk] for pk in removed if pk in places]
    taken = np.concatenate([np.delete(order, gone), np.array(behind, dtype=order.dtype)])
    return taken, 0 if gone else len(old)


def _numbered(rows: pa.Table) -> pa.Table:
    """Return the rows with new sequence numbers, which begin at 1."""
    import pyarrow as pa  # noqa: PLC0415 - only there with Lite

    position = rows.column_names.index(_SEQUENCE)
    field = rows.schema.field(position)
    return rows.set_column(position, field, pa.array(np.arange(1, rows.num_rows + 1), type=field.type))


def _grow_indexes(
    old: CollectionFiles,
    new: CollectionFiles,
    rows: pa.Table,
    places: npt.NDArray[np.int64],
    *,
    besides: Collection[str],
) -> None:
    """Write the dense indexes of ``new`` that follow from those of ``old``; Lite builds the others.

    ``rows`` are those of ``old`` with further ones behind; row i of ``new`` is ``rows[places[i]]``.
    """
    specs = {field: spec for field, spec in new.manifest.index_specs.items() if field not in besides}
    for field, spec in specs.items():
        known = old.manifest.index_specs.get(field)
        source, target = old.index_file(field, spec.index_type), new.index_file(field, spec.index_type)
        if source is None or target is None or known is None or known.to_dict() != spec.to_dict():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        _grow(source, target, rows.column(field), places, spec)


def _grow(source: Path, target: Path, column: pa.ChunkedArray, places: npt.NDArray[np.int64], spec: IndexSpec) -> None:
    """Write the index of ``source`` for all vectors of a column, whose first ones it has.

    Nothing is written if Lite has not finished that index, or if its type does not grow: IVF would keep its centres.
    """
    faiss: Any = import_module("faiss")  # only there with Lite; its own type hints lack most of it
    try:
        index = faiss.read_index(str(source))
    except RuntimeError:
        return
    if index.ntotal == len(column) and np.array_equal(places, np.arange(len(column))):
        shutil.copyfile(source, target)
        return
    if spec.index_type != "HNSW":
        return
    added = column.slice(index.ntotal).combine_chunks()
    vectors = np.asarray(added.flatten(), dtype=np.float32).reshape(-1, index.d)
    if spec.metric_type == "COSINE":  # Lite stores vectors of length 1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = (vectors / np.where(norms == 0, 1, norms)).astype(np.float32)
    # A read index draws the same levels at each addition, so that few vectors at a time would never get a high one.
    index.hnsw.rng = faiss.RandomGenerator(int(index.ntotal))
    index.add(np.ascontiguousarray(vectors))
    index.permute_entries(places)
    faiss.write_index(index, str(target))


def _make_visible(model: Path, home: Path, physical: str) -> None:
    from milvus_lite.schema.persistence import load_schema, save_schema  # noqa: PLC0415 - only there with Lite

    _, schema = load_schema(str(model / "schema.json"))
    save_schema(schema, physical, str(home / "schema.json"))
