"""Fetching a prebuilt index from a server on loopback: joined, unpacked, resumed, and of the known content alone."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from judgetree import load_settings, open_prebuilt
from judgetree.evaluation.fetch_prebuilt import PREBUILT, PublicFile, PublicPrebuilt, fetch_prebuilt
from judgetree.modules.errors import LoadingError, SettingsError
from tests.loopback import QuietHandler, serving
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.prebuilt_files import PASSAGES, contents, vectors_of, write_corpus_file, write_faiss


def handler_of(files: dict[str, bytes], asked: list[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            content = files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def public(base_url: str, files: dict[str, bytes]) -> PublicPrebuilt:
    return replace(
        PREBUILT["wiki18-e5"],
        files=[
            PublicFile(
                url=f"{base_url}{path}",
                size=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
                target="wiki-18.jsonl" if path.endswith(".gz") else "e5_Flat.index",
                is_gzip=path.endswith(".gz"),
            )
            for path, content in files.items()
        ],
    )


def test_it_is_fetched_once_joined_unpacked_and_opened(tmp_path: Path) -> None:
    corpus = write_corpus_file(tmp_path / "source").read_bytes()
    index = write_faiss(tmp_path / "source", vectors_of(contents())).read_bytes()
    files = {"/corpus.jsonl.gz": gzip.compress(corpus), "/part_aa": index[:300], "/part_ab": index[300:]}
    asked: list[str] = []
    folder = tmp_path / "wiki"
    with serving(handler_of(files, asked)) as base_url:
        published = public(base_url, files)
        files["/part_ab"] = index[300:-1] + b"?"
        with pytest.raises(LoadingError, match=r"part_ab has the SHA-256 .* expected was"):
            fetch_prebuilt(published, folder, loopback_http=True)
        files["/part_ab"] = index[300:]
        assert fetch_prebuilt(published, folder, loopback_http=True)
        assert not fetch_prebuilt(published, folder, loopback_http=True)
    assert asked == ["/corpus.jsonl.gz", "/part_aa", "/part_ab", "/part_ab"], "what is done is not fetched again"
    assert {path.name for path in folder.iterdir()} == {"wiki-18.jsonl", "e5_Flat.index", "prebuilt.yaml"}
    settings = load_settings(home=tmp_path / "home")
    assert len(open_prebuilt(str(folder), settings, embeddings=BagOfWordsEmbedder()).corpus) == len(PASSAGES)


def test_a_larger_file_and_an_unknown_name_are_refused(tmp_path: Path) -> None:
    files = {"/part_aa": b"12345"}
    with serving(handler_of(files, [])) as base_url:
        published = public(base_url, files)
        files["/part_aa"] = b"123456"
        with pytest.raises(LoadingError, match="is larger than"):
            fetch_prebuilt(published, tmp_path, loopback_http=True)
    with pytest.raises(SettingsError, match=r"Unknown prebuilt index 'wiki19'\. Allowed: wiki18-e5"):
        fetch_prebuilt("wiki19", tmp_path)
