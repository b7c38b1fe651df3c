"""Uploads: what is taken and what is refused, and that it can be asked once its job is done."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import docx
import httpx
import pytest

from judgetree.app.cli import main
from judgetree.app.server.collections.filling import uploads_folder
from judgetree.app.server.collections.uploads import MAX_OPEN, UploadJob, Uploads
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.safety.key_watch import KeyWatch
from judgetree.app.server.serving.caller import LOCAL
from judgetree.app.server.serving.options import ServerOptions
from judgetree.app.stores.collections import CollectionReader
from judgetree.modules.index.connection import connect
from judgetree.modules.index.writer_lock import LockOptions, writer_lock
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, CORPUS, write_corpus
from tests.app.server.serving import PATIENT, serving

KETTLES = {"kettles.md": b"# Kettles\n\nKettles whistle."}


def send(http: httpx.Client, files: dict[str, bytes], name: str = COLLECTION) -> httpx.Response:
    parts = [("files", (each, content)) for each, content in files.items()]
    return http.post(f"/v1/collections/{name}/documents", files=parts)


def ended(http: httpx.Client, job_id: str) -> dict[str, object]:
    deadline = time.monotonic() + 60
    while (job := http.get(f"/v1/jobs/{job_id}").json())["status"] in ("queued", "running"):
        assert time.monotonic() < deadline, job
        time.sleep(0.02)
    return job


def upload(http: httpx.Client, files: dict[str, bytes], name: str = COLLECTION) -> dict[str, object]:
    """The job of an upload once it has ended."""
    sent = send(http, files, name)
    assert sent.status_code == 202, sent.text
    assert sent.json()["files"] == list(files)
    return ended(http, sent.json()["id"])


def sources(http: httpx.Client, name: str = COLLECTION) -> list[str]:
    return [each["source"] for each in http.get(f"/v1/collections/{name}").json()["sources"]]


def zipped(*parts: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, part in enumerate(parts):
            archive.writestr(f"word/{number}.xml", part)
    return file.getvalue()


def word_document(text: str) -> bytes:
    file = io.BytesIO()
    document = docx.Document()
    document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


def test_uploads_are_added_and_the_rest_of_the_collection_stays(http: httpx.Client, settings: Settings) -> None:
    job = upload(http, {**KETTLES, "b.md": CORPUS["b.md"].encode(), "pots.docx": word_document("Pots have lids.")})
    assert (job["status"], job["error"], job["done"], job["total"]) == ("done", None, 3, 3)
    upload(http, {"b.md": b"Drums are round."})  # not the b.md of the folder that was indexed before
    upload(http, {"cups.txt": b"Cups have handles."})
    assert sources(http) == sorted(
        [*CORPUS, *(f"uploads/{n}" for n in ("b.md", "cups.txt", "kettles.md", "pots.docx"))]
    )
    found = http.get(f"/v1/collections/{COLLECTION}/search", params={"query": "wall round lids"}).json()["sparse"]
    assert {hit["text"] for hit in found} == {CORPUS["b.md"], "Drums are round.", "Pots have lids."}
    kept = uploads_folder(settings, COLLECTION)
    assert sorted(file.name for file in kept.iterdir()) == ["b.md", "cups.txt", "kettles.md", "pots.docx"]


def test_a_job_tells_what_of_a_file_no_chunk_holds(http: httpx.Client) -> None:
    job = upload(http, {**KETTLES, "pots.md": b"# Pots\n\nPots have lids. <!-- Do they? -->"}, "kitchen")
    assert (job["status"], job["left_out"]) == ("done", {"pots.md": {"comment": 1}})


def test_indexing_the_folder_of_uploads_finds_them_unchanged(
    http: httpx.Client, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(http, KETTLES)
    before = sources(http)
    assert main(["index", str(uploads_folder(settings, COLLECTION)), "-c", COLLECTION]) == 0
    assert "1 unchanged" in capsys.readouterr().out
    assert sources(http) == before


def test_uploads_are_not_taken_for_a_moved_folder_with_the_same_files(http: httpx.Client, tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "gone", {"b.md": CORPUS["b.md"]})
    assert main(["index", str(folder), "-c", "drums"]) == 0
    shutil.rmtree(folder)
    upload(http, {"b.md": CORPUS["b.md"].encode()}, "drums")
    assert sources(http, "drums") == ["b.md", "uploads/b.md"]


def test_uploads_keep_their_sources_when_the_home_folder_moves(settings: Settings, tmp_path: Path) -> None:
    with serving(settings, PATIENT) as url, httpx.Client(base_url=url, timeout=60) as http:
        upload(http, KETTLES)
    settings.home.rename(tmp_path / "moved")
    moved = settings.model_copy(update={"home": tmp_path / "moved"})
    with serving(moved, PATIENT) as url, httpx.Client(base_url=url, timeout=60) as http:
        upload(http, {"kettles.md": b"Kettles sing."})
        assert sources(http) == sorted([*CORPUS, "uploads/kettles.md"])


def test_a_new_name_makes_a_collection(http: httpx.Client) -> None:
    assert upload(http, KETTLES, "Kitchen")["status"] == "done"
    assert sources(http, "Kitchen") == ["kettles.md"]
    assert upload(http, {"cups.txt": b"Cups."}, "kitchen")["status"] == "done"
    assert (sources(http, "Kitchen"), sources(http, "kitchen")) == (["kettles.md"], ["cups.txt"])


def test_an_open_conversation_finds_what_was_uploaded_meanwhile(http: httpx.Client) -> None:
    upload(http, {"a.md": CORPUS["a.md"].encode()}, "drums")

    def answer() -> str:
        asked = {"model": "drums/judge", "chat_id": "one", "messages": [{"role": "user", "content": CHAIN.question}]}
        return str(http.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]["content"])

    assert answer() != CHAIN.answer
    upload(http, {"b.md": CORPUS["b.md"].encode()}, "drums")
    assert answer() == CHAIN.answer


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("../../../etc/x.md", "x.md"), ("C:\\papers\\x.md", "x.md"), ("/x.md", "x.md"), ("壁厚.MD", "壁厚.MD")],
)
def test_only_the_last_part_of_a_file_name_counts(http: httpx.Client, settings: Settings, sent: str, kept: str) -> None:
    job = ended(http, send(http, {sent: b"Kettles whistle."}, "kitchen").json()["id"])
    assert (job["status"], job["files"], sources(http, "kitchen")) == ("done", [kept], [kept])
    assert [file.name for file in (settings.home / "uploads").rglob("*") if file.is_file()] == [kept]


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "x/..",
        "x/",
        " ",
        ".md",
        ".x.md",
        "x\x00.md",
        "x\n.md",
        "x\x7f.md",
        "x\u202e.md",
        "x" * 248 + ".md",
        "CON.md",
        *("nul.tar.md", "lpt1.txt", "com¹.md", "x:y.md", "x?.md", "x.md ", "x.md.", "x", "x.exe", "x.zip", "x.xlsx"),
    ],
)
def test_a_name_that_cannot_be_kept_is_refused(http: httpx.Client, settings: Settings, name: str) -> None:
    disposition = f'form-data; name="files"; filename="{name}"'.encode()
    body = b"--x\r\nContent-Disposition: " + disposition + b"\r\n\r\nKettles whistle.\r\n--x--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = http.post("/v1/collections/kitchen/documents", content=body, headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert not (settings.home / "uploads").exists()


def test_refused_files_are_named_and_the_rest_is_indexed(http: httpx.Client) -> None:
    sent = send(http, {"x.exe": b"MZ", **KETTLES, "c.docx": b"no zip", "a/Kettles.md": b"2", "x.pdf": b"no pdf"})
    assert (sent.status_code, sent.json()["files"]) == (202, ["kettles.md", "x.pdf"])
    job = ended(http, sent.json()["id"])
    assert job["status"] == "failed"
    said = str(job["error"])
    assert said.startswith("4 of 5 files could not be read; the others are indexed. uploads/x.pdf: ")
    assert "The type of 'x.exe' cannot be read. Allowed: " in said
    assert "Two files are called 'Kettles.md'." in said
    assert "'c.docx' is no Word document. Save it as one." in said
    assert "uploads/kettles.md" in sources(http)


def test_an_upload_without_a_file_that_can_be_taken_is_refused(http: httpx.Client, settings: Settings) -> None:
    answer = send(http, {"x.exe": b"MZ", "y.docx": b"no zip"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "unknown_file_type")
    assert http.post(f"/v1/collections/{COLLECTION}/documents", data={"files": "x"}).status_code == 422
    assert http.post(f"/v1/collections/{COLLECTION}/documents").status_code == 422
    assert not (settings.home / "uploads").exists()


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(settings: Settings) -> None:
    small = PATIENT.model_copy(update={"max_upload_bytes": 1_000_000})
    with serving(settings, small) as url, httpx.Client(base_url=url, timeout=60) as http:
        bomb = zipped(*[b"\0" * 600_000] * 2)
        assert len(bomb) < 10_000
        for content, status in ((bomb, 413), (zipped(*[b""] * 10_001), 413), (b"no zip", 422), (b"x" * 1_200_000, 413)):
            answer = send(http, {"x.docx": content})
            assert (answer.status_code, answer.json()["error"]["type"]) == (status, "invalid_request_error")


def test_what_cannot_be_read_fails_its_job_and_the_rest_is_indexed(http: httpx.Client, settings: Settings) -> None:
    job = upload(http, KETTLES | {"x.pdf": b"no pdf"})
    assert job["status"] == "failed"
    assert str(job["error"]).startswith("1 of 2 files could not be read; the others are indexed. uploads/x.pdf: ")
    assert "uploads/kettles.md" in sources(http)
    assert upload(http, {"y.json": b"["}, "kitchen")["status"] == "failed"
    assert http.get("/v1/collections/kitchen").status_code == 404
    assert [file.name for file in (settings.home / "uploads").rglob("*") if file.is_file()] == ["kettles.md"]


@pytest.mark.parametrize("name", ["a b", "1a", "notes__0123abcd", "%00", "..", "a" * 201, "壁厚"])
def test_what_is_no_name_of_a_collection_is_refused(http: httpx.Client, settings: Settings, name: str) -> None:
    assert send(http, KETTLES, name).status_code in (400, 404, 405)
    assert not (settings.home / "uploads").exists()


def test_the_memory_of_conversations_takes_no_documents(http: httpx.Client, settings: Settings) -> None:
    asked = {"model": f"{COLLECTION}/naive", "messages": [{"role": "user", "content": CHAIN.question}]}
    assert http.post("/v1/chat/completions", json=asked).status_code == 200
    with closing(connect(str(settings.milvus_address))) as connection:
        names = set(connection.client.list_collections())
    shown = {each["name"] for each in http.get("/v1/collections").json()["data"]}
    jobs = [(name, send(http, KETTLES, name)) for name in names - shown]
    assert jobs
    for name, sent in jobs:
        assert sent.status_code == 400 or ended(http, sent.json()["id"])["status"] == "failed", name
    assert not [file for file in (settings.home / "uploads").rglob("*") if file.is_file()]


@contextmanager
def clients(settings: Settings, **grants: list[str] | None) -> Iterator[dict[str, httpx.Client]]:
    """A client for each key that is granted these collections."""
    with closing(KeyTables(settings)) as tables:
        keys = {name: KeyBook(tables).add(name, collections=each)[1] for name, each in grants.items()}
    with serving(settings, ServerOptions(needs_keys=True, requests_per_minute=1_000_000)) as url:
        made = {
            name: httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {key}"})
            for name, key in keys.items()
        }
        try:
            yield made
        finally:
            for client in made.values():
                client.close()


def test_a_key_fills_what_it_is_granted_and_sees_its_own_jobs(settings: Settings) -> None:
    with clients(settings, ada=["kitchen"], eve=["kitchen", COLLECTION], max=None) as each:
        refused = send(each["ada"], KETTLES)
        assert refused.status_code == 404
        assert refused.json()["error"]["message"].endswith("You may fill: kitchen.")
        fillable = [each[name].get("/v1/collections").json()["may_fill"] for name in ("ada", "eve", "max")]
        assert fillable == [["kitchen"], sorted(["kitchen", COLLECTION]), None]
        job = upload(each["ada"], KETTLES, "kitchen")
        assert job["status"] == "done"
        assert each["eve"].get(f"/v1/jobs/{job['id']}").status_code == 404
        assert sources(each["eve"], "kitchen") == ["kettles.md"]


def test_a_key_takes_half_of_a_full_queue(settings: Settings) -> None:
    with closing(connect(str(settings.milvus_address))) as connection:
        other_writer = writer_lock(connection, COLLECTION, LockOptions(), on_wait=lambda _: None)
        with clients(settings, ada=[COLLECTION], eve=[COLLECTION]) as each, other_writer:
            sent = [send(each["ada"], {f"{number}.md": b"Kettles whistle."}) for number in range(MAX_OPEN // 2 + 1)]
            assert [answer.status_code for answer in sent] == [202] * (MAX_OPEN // 2) + [429]
            assert sent[-1].json()["error"]["code"] == "too_many_uploads"
            assert sent[-1].headers["retry-after"] == "10"
            assert each["ada"].get(f"/v1/jobs/{sent[1].json()['id']}").json()["status"] == "queued"
            assert send(each["eve"], KETTLES).status_code == 202


def test_the_end_of_the_server_ends_uploads(settings: Settings) -> None:
    async def end_while_another_writes() -> list[UploadJob]:
        uploads = Uploads(settings, PATIENT, KeyWatch(KeyBook(KeyTables(settings))))
        with closing(connect(str(settings.milvus_address))) as connection:
            with writer_lock(connection, COLLECTION, LockOptions(), on_wait=lambda _: None):
                files = [[(f"{number}.md", io.BytesIO(b"Kettles whistle."))] for number in range(3)]
                jobs = [await uploads.add(LOCAL, COLLECTION, each) for each in files]
                ending = asyncio.create_task(uploads.close())
                await asyncio.sleep(0)  # lets it begin
            await ending
        return jobs

    jobs = asyncio.run(end_while_another_writes())
    assert [job.status for job in jobs] == ["failed"] * 3
    assert all("The server ended" in str(job.error) for job in jobs)
    with closing(CollectionReader(settings)) as reader:
        assert list(((found := reader.read(COLLECTION)) and found.files) or ()) == sorted(CORPUS)
    assert not (uploads_folder(settings, COLLECTION) / "2.md").exists()


def events_of(http: httpx.Client, job_id: str) -> list[tuple[str, dict[str, object]]]:
    """Types and data of a job's events, until the server ends them."""
    text = http.get(f"/v1/jobs/{job_id}", headers={"Accept": "text/event-stream"}).text
    pairs = [dict(line.split(": ", 1) for line in each.splitlines()) for each in text.split("\n\n") if "data: " in each]
    return [(each["event"], json.loads(each["data"])) for each in pairs]


def test_the_changes_of_a_job_are_events_until_it_has_ended(http: httpx.Client, settings: Settings) -> None:
    with closing(connect(str(settings.milvus_address))) as connection:
        with writer_lock(connection, COLLECTION, LockOptions(), on_wait=lambda _: None):
            job_id = send(http, KETTLES).json()["id"]
            accept = {"Accept": "text/event-stream"}
            with http.stream("GET", f"/v1/jobs/{job_id}", headers=accept) as stream:
                assert stream.headers["Content-Type"].startswith("text/event-stream")
                assert next(stream.iter_lines()) in ("event: queued", "event: running")
        events = events_of(http, job_id)
    kinds = [kind for kind, _ in events]
    assert kinds[-1] == "done"
    assert set(kinds[:-1]) <= {"queued", "running"}
    assert [job["status"] for _, job in events] == kinds
    assert events_of(http, job_id) == [("done", ended(http, job_id))], "a job that has ended has one event"
    broken = send(http, {"empty.md": b""}).json()["id"]
    assert events_of(http, broken)[-1][0] == "failed"
    assert http.get("/v1/jobs/nothing", headers={"Accept": "text/event-stream"}).status_code == 404


def test_what_is_no_job_is_not_found(http: httpx.Client) -> None:
    for name in ("none", "a%2Fb", "%00", "a" * 100):
        assert http.get(f"/v1/jobs/{name}").status_code == 404


def test_the_page_offers_uploads(http: httpx.Client) -> None:
    assert http.get("/assets/options.json").json()["takes_uploads"] is True


def test_no_copy_of_an_upload_is_left(http: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    upload(http, KETTLES)
    send(http, {"x.docx": b"no zip"})
    assert not list(tmp_path.glob("judgetree-upload-*"))
