"""``judgetree keys`` and the start of a server that demands one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.app.server.keys.key import id_in
from tests.app.conftest import COLLECTION, Cli


def test_a_key_is_shown_once(cli: Cli) -> None:
    made = cli("keys", "add", "ada", "-c", "notes", "--usd-per-day", "2", "--tokens-per-question", "900").ok()
    text = made.out.strip()
    assert id_in(text)
    assert "granting notes" in made.err
    listed = cli("keys", "list").ok()
    assert "ada" in listed.out
    assert "$2 a day, 900 tokens a question" in listed.out
    assert "never used" in listed.out
    documents = json.loads(cli("keys", "list", "--json").ok().out)
    assert documents[0]["collections"] == ["notes"]
    assert text[-43:] not in listed.out + json.dumps(documents)


def test_a_key_grants_nothing_by_itself(cli: Cli) -> None:
    assert "granting no collection" in cli("keys", "add", "ada").ok().err
    assert "granting all collections" in cli("keys", "add", "bob", "--all-collections").ok().err
    cli("keys", "add", "eve", "--all-collections", "-c", "notes").refused("not both")


def test_a_granted_collection_that_is_not_there_is_named(cli: Cli, home: Path) -> None:
    assert "no collection" not in cli("keys", "add", "ada", "-c", COLLECTION).ok().err
    made = cli("keys", "add", "bob", "-c", COLLECTION, "-c", "nots", "--json").ok()
    assert json.loads(made.out)["collections"] == [COLLECTION, "nots"]
    assert "There is no collection 'nots' yet. Did you mean 'notes'?" in made.err


def test_a_key_is_made_though_the_collections_cannot_be_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_MILVUS_URI", "ftp://nowhere")
    assert id_in(cli("keys", "add", "ada", "-c", COLLECTION).ok().out.strip())


def test_a_revoked_key_stays_listed(cli: Cli) -> None:
    made = json.loads(cli("keys", "add", "ada", "--json").ok().out)
    assert id_in(made["key"]) == made["id"]
    cli("keys", "revoke", "ada").ok()
    assert "revoked" in cli("keys", "list").ok().out
    cli("keys", "revoke", "ada").refused("no valid key 'ada'", "judgetree keys list")


def test_no_server_starts_without_the_key_that_it_demands(cli: Cli) -> None:
    cli("serve", "--host", "0.0.0.0").refused("The address 0.0.0.0 demands a key", "judgetree keys add")
    cli("serve", "--keys").refused("judgetree keys add")
