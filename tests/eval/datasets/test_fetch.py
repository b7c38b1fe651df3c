"""Fetching data sets from a real HTTP server on loopback: whole, interrupted, refused, wrong."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from judgetree.evaluation.datasets import fetch
from judgetree.evaluation.datasets.fetch import by_hand, source_of
from judgetree.evaluation.datasets.registry import DATASETS
from judgetree.evaluation.datasets.sources import SOURCES
from judgetree.modules.errors import LoadingError, SettingsError
from tests.eval.dataset_files import hotpot_row
from tests.loopback import QuietHandler, serving

fetch_dataset = functools.partial(fetch.fetch_dataset, loopback_http=True)
HOTPOT = json.dumps([hotpot_row(1), hotpot_row(2)]).encode()


@dataclass(kw_only=True)
class FileServer:
    """Serves one file, as static file servers do."""

    base_url: str = ""
    content: bytes = HOTPOT
    tag: str = '"v1"'
    hang_up_after: int | None = None
    status: int = 200
    redirects_to: str = ""
    says_length: bool = True
    ranges: list[str] = field(default_factory=list)
    """What was asked for, request by request; "" for the whole file."""


def _handler(server: FileServer) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            server.ranges.append(asked)
            start = 0
            if asked and self.headers.get("If-Range") == server.tag:
                start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= len(server.content) and start:
                self.send_error(416)
                return
            if server.redirects_to:
                self.send_response(302)
                self.send_header("Location", server.redirects_to)
                self.end_headers()
                return
            if server.status != 200:
                self.send_error(server.status)
                return
            self.send_response(206 if start else 200)
            if server.says_length:
                self.send_header("Content-Length", str(len(server.content) - start))
            if server.tag:
                self.send_header("ETag", server.tag)
            self.end_headers()
            self.wfile.write(server.content[start : server.hang_up_after])

    return Handler


@pytest.fixture
def server() -> Iterator[FileServer]:
    served = FileServer()
    with serving(_handler(served)) as address:
        served.base_url = f"{address}/file"
        yield served


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    folder = tmp_path / "sets"
    folder.mkdir()
    return folder


def archive(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    return packed.getvalue()


BEIR = {
    "scifact/corpus.jsonl": b'{"_id": "d", "title": "Drums", "text": "Drums are round."}\n',
    "scifact/queries.jsonl": b'{"_id": "q", "text": "Are drums round?"}\n',
    "scifact/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq\td\t1\n",
    "__MACOSX/scifact/._corpus.jsonl": b"x",
    "../../outside/qrels/evil.tsv": b"query-id\tcorpus-id\tscore\nq\td\t1\n",
}


def test_file_is_downloaded_read_and_there_the_second_time(server: FileServer, sets: Path) -> None:
    seen: list[tuple[int, int]] = []
    first = fetch_dataset("hotpotqa", sets, url=server.base_url, on_progress=lambda *progress: seen.append(progress))
    file = sets / "hotpot_dev_distractor_v1.json"
    assert (first.questions, first.documents, first.malformed, first.downloaded) == (2, 2, 0, True)
    assert first.spec == f"hotpotqa:{file}"
    assert file.read_bytes() == HOTPOT
    assert seen[-1] == (len(HOTPOT), len(HOTPOT))
    assert [path.name for path in sets.iterdir()] == [file.name], "nothing half done is left"
    again = fetch_dataset("hotpotqa", sets, url=server.base_url)
    assert (again.spec, again.questions, again.downloaded) == (first.spec, 2, False)
    assert len(server.ranges) == 1


def test_interrupted_download_goes_on_where_it_stopped(server: FileServer, sets: Path) -> None:
    server.hang_up_after = 100
    with pytest.raises(LoadingError, match="Save it as"):
        fetch_dataset("hotpotqa", sets, url=server.base_url)
    assert not (sets / "hotpot_dev_distractor_v1.json").exists()
    server.hang_up_after = None
    assert fetch_dataset("hotpotqa", sets, url=server.base_url).questions == 2
    assert server.ranges == ["", "bytes=100-"]


@pytest.mark.parametrize("tag", ['"v2"', ""])
def test_download_of_a_file_that_may_have_changed_begins_anew(server: FileServer, sets: Path, tag: str) -> None:
    server.hang_up_after = 100
    with pytest.raises(LoadingError):
        fetch_dataset("hotpotqa", sets, url=server.base_url)
    server.hang_up_after, server.tag = None, tag
    server.content = json.dumps([hotpot_row(number) for number in range(3)]).encode()
    assert fetch_dataset("hotpotqa", sets, url=server.base_url).questions == 3


def test_download_that_was_whole_before_it_was_stopped_is_made_again(server: FileServer, sets: Path) -> None:
    part = sets / "download.part"
    part.write_bytes(HOTPOT)
    part.with_suffix(".tag").write_text(server.tag)
    fetch.download(server.base_url, part, max_bytes=len(HOTPOT), loopback_http=True)
    assert part.read_bytes() == HOTPOT
    assert server.ranges == [f"bytes={len(HOTPOT)}-", ""]


def test_folder_is_taken_out_of_its_archive_and_nothing_else(server: FileServer, sets: Path) -> None:
    server.content = archive(**BEIR)
    fetched = fetch_dataset("beir-scifact", sets, url=server.base_url)
    assert (fetched.spec, fetched.questions, fetched.documents) == (f"beir:{sets / 'scifact'}", 1, 1)
    files = {str(path.relative_to(sets.parent)) for path in sets.parent.rglob("*") if path.is_file()}
    assert files == {
        f"sets/scifact/{name}" for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "qrels/evil.tsv")
    }


def test_file_is_taken_out_of_its_archive(server: FileServer, sets: Path) -> None:
    server.content = archive(**{"data_ids/dev.json": HOTPOT, "data_ids/train.json": b"[]"})
    assert fetch_dataset("2wiki", sets, url=server.base_url).questions == 2
    assert [path.name for path in sets.iterdir()] == ["2wikimultihopqa_dev.json"]


@pytest.mark.parametrize(
    ("name", "content", "status", "why"),
    [
        ("hotpotqa", b"<html>Log in</html>", 200, "malformed"),
        ("hotpotqa", HOTPOT, 403, "HTTP 403 Forbidden"),
        ("2wiki", archive(**{"a/other.json": HOTPOT}), 200, "holds none of dev.json"),
    ],
)
def test_what_is_no_data_set_is_not_kept_and_the_way_by_hand_is_told(
    server: FileServer, sets: Path, name: str, content: bytes, status: int, why: str
) -> None:
    server.content, server.status = content, status
    with pytest.raises(LoadingError, match=f"(?s){why}.*in a browser.*Save it as {sets}"):
        fetch_dataset(name, sets, url=server.base_url)
    assert list(sets.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "kind"), [("beir-scifact", archive(**BEIR), "md5"), ("hotpotqa", HOTPOT, "sha256")]
)
def test_content_other_than_published_is_refused(
    server: FileServer, sets: Path, name: str, content: bytes, kind: str
) -> None:
    server.content, found = content, hashlib.new(kind, content, usedforsecurity=False).hexdigest()
    source = replace(source_of(name), url=server.base_url)
    with pytest.raises(LoadingError, match=f"{found}, but the authors' file has {getattr(source, kind)}"):
        fetch_dataset(source, sets)
    assert list(sets.iterdir()) == []
    assert fetch_dataset(replace(source, **{kind: found}), sets).downloaded


@pytest.mark.parametrize("says_length", [True, False])
def test_endless_download_ends_at_the_limit(server: FileServer, sets: Path, says_length: bool) -> None:
    server.says_length, server.content = says_length, b" " * 5_000_000
    source = replace(source_of("hotpotqa"), url=server.base_url, max_bytes=1_000_000)
    with pytest.raises(LoadingError, match="larger than 1 MB"):
        fetch_dataset(source, sets)
    assert list(sets.iterdir()) == []


def test_archive_that_unpacks_to_too_much_is_refused(server: FileServer, sets: Path) -> None:
    with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("dev.json", b" " * 3_000_000)
    server.content = packed.getvalue()
    with pytest.raises(LoadingError, match="larger than 2 MB"):
        fetch_dataset(replace(source_of("2wiki"), url=server.base_url, max_bytes=100_000), sets)
    assert list(sets.iterdir()) == []


@pytest.mark.parametrize("loopback_http", [True, False])
def test_plain_http_is_refused_at_every_hop(server: FileServer, sets: Path, loopback_http: bool) -> None:
    server.redirects_to = "http://elsewhere.example/file"
    with pytest.raises(LoadingError, match="only https:// is allowed"):
        fetch.fetch_dataset("hotpotqa", sets, url=server.base_url, loopback_http=loopback_http)
    assert len(server.ranges) == loopback_http, "the redirection is not followed"


def test_password_of_a_mirror_is_sent_and_not_told(server: FileServer, sets: Path) -> None:
    server.status = 403
    with pytest.raises(LoadingError, match="HTTP 403") as caught:
        fetch_dataset("hotpotqa", sets, url=server.base_url.replace("://", "://ada:hunter2@"))
    assert "hunter2" not in str(caught.value)


def test_set_that_only_a_browser_gets_says_how(tmp_path: Path) -> None:
    with pytest.raises(
        LoadingError, match=r"musique_v1\.0\.zip.*Take musique_ans_v1\.0_dev\.jsonl out.*--dataset musi"
    ):
        fetch_dataset("musique", tmp_path / "sets")
    assert not (tmp_path / "sets").exists()


def test_unknown_name_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Allowed: hotpotqa, hotpotqa-train, 2wiki"):
        fetch_dataset("squad", tmp_path)


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_says_all_that_a_user_must_know(name: str) -> None:
    source = SOURCES[name]
    assert source.format in DATASETS
    assert all((source.size, source.citation, source.homepage, source.licence, source.target))
    assert source.url or source.by_hand
    assert not source.url or source.url.startswith("https://")
    assert source.sha256 or source.md5 or source.max_bytes < 10_000_000_000
    assert source.target in by_hand(source, Path(source.target), why="")
