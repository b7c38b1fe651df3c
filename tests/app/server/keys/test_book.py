"""Keys: made, found, revoked, and kept as hashes where all workers see them."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from judgetree.app.server.keys.book import FRESH_S, KeyBook
from judgetree.app.server.keys.key import Budget, StoredKey, id_in, new_key_text
from judgetree.app.server.keys.tables import FILE_NAME, KeyTables
from judgetree.modules.errors import SettingsError, StoreFailure
from judgetree.modules.settings import Settings, without_secrets
from tests.app.server.keys.conftest import OpenTables


def test_a_key_is_found_by_its_text_alone(tables: OpenTables) -> None:
    made = KeyBook(tables())
    key, text = made.add(
        "ada", collections=frozenset({"notes"}), per_day=Budget(usd=1.5, tokens=10), per_question=Budget(seconds=3.5)
    )
    book = KeyBook(tables())
    found = asyncio.run(book.find(text))
    assert found == key
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    for other in (wrong, text + "A", f"sk-jt-{'0' * 12}-{text[-43:]}", "sk-proj-x", "", key.id):
        assert asyncio.run(book.find(other)) is None


def test_a_key_grants_no_collection_unless_asked_to(tables: OpenTables) -> None:
    book = KeyBook(tables())
    assert book.add("none")[0].collections == frozenset()
    book.add("all", collections=None)
    assert {key.name: key.collections for key in book.entries()} == {"none": frozenset(), "all": None}


def test_a_revoked_key_is_refused_by_a_worker_that_knew_it(tables: OpenTables) -> None:
    now = [0.0]
    book, other = KeyBook(tables()), KeyBook(tables(), clock=lambda: now[0])
    key, text = book.add("ada")
    assert asyncio.run(other.find(text)) == key
    book.revoke("ada")
    now[0] += FRESH_S + 0.1
    assert asyncio.run(other.find(text)) is None
    assert [bool(each.revoked_at) for each in book.entries()] == [True]
    assert book.has_any() is False


def test_a_new_key_is_valid_at_once_in_a_worker_that_has_just_read(tables: OpenTables) -> None:
    book, other = KeyBook(tables()), KeyBook(tables())
    _, known = book.add("ada")
    assert asyncio.run(other.find(known)) is not None
    for name in ("ben", "cleo"):
        key, text = book.add(name)
        assert asyncio.run(other.find(text)) == key


def test_guessed_keys_share_one_reading(tables: OpenTables) -> None:
    class Counted(KeyBook):
        readings = 0

        def entries(self) -> list[StoredKey]:
            Counted.readings += 1
            return super().entries()

    KeyBook(tables()).add("ada")
    book = Counted(tables())

    async def guess() -> None:
        for _ in range(2):
            guesses = (new_key_text()[1] for _ in range(200))
            assert set(await asyncio.gather(*map(book.find, guesses))) == {None}

    asyncio.run(guess())
    assert Counted.readings <= 4, "one at the start, and one or two for each two hundred"


def test_the_use_of_a_key_is_noted(tables: OpenTables) -> None:
    book = KeyBook(tables())
    _, text = book.add("ada")
    assert book.entries()[0].last_used_at == ""
    asyncio.run(book.find(text))
    assert book.entries()[0].last_used_at != ""


def test_the_text_of_a_key_is_kept_nowhere(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    tables = KeyTables(settings)
    key, text = KeyBook(tables).add("ada")
    tables.close()
    secret = text[-43:].encode()
    assert [file for file in tmp_path.glob("*.sqlite*") if secret in file.read_bytes()] == []
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert id_in(text) == key.id
    assert text not in without_secrets(f"the key {text}")
    assert key.digest not in repr(key)


def test_no_file_is_made_to_look_for_keys(tmp_path: Path) -> None:
    tables = KeyTables(Settings(home=tmp_path / "home"))
    assert KeyBook(tables).entries() == []
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[2J", "x" * 101, "a\x00"])
def test_names_that_are_no_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="name of a key"):
        KeyBook(KeyTables(Settings(home=tmp_path))).add(name)


def test_a_name_is_one_key_s_until_it_is_revoked(tmp_path: Path) -> None:
    tables = KeyTables(Settings(home=tmp_path))
    book = KeyBook(tables)
    first, _ = book.add("ada")
    for taken in ("ada", first.id):  # revoke takes both
        with pytest.raises(SettingsError, match=r"There is a key .* already"):
            book.add(taken)
    book.revoke(first.id)
    book.add("ada")
    with pytest.raises(SettingsError, match="no valid key"):
        book.revoke(first.id)
    tables.close()


def test_a_damaged_file_is_no_open_door(tmp_path: Path) -> None:
    tables = KeyTables(Settings(home=tmp_path))
    _, text = KeyBook(tables).add("ada")
    tables.close()
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreFailure, match=r"The keys in .* cannot be used"):
        asyncio.run(KeyBook(tables).find(text))
