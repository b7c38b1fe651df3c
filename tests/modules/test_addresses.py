"""Addresses: what is cut off, what is left, and how a client gets the secrets."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from judgetree.modules.addresses import Address, with_addresses

PASSWORD = "lovelace"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://ada:lovelace@h:8000/v1#m", "http://h:8000/v1#m"),
        ("http://lovelace@h/v1#m", "http://h/v1#m"),
        ("http://ada:love@lace@h/v1#m", "http://h/v1#m"),
        ("http://ada:lovelace@[::1]:80/v1", "http://[::1]:80/v1"),
        ("http://ada:love/lace@h:80/v1#m", "http://h:80/v1#m"),
        ("http://ada:love#lace@h/v1#m", "http://h/v1#m"),
        ("http://ada:love?lace@h/v1#m", "http://h/v1#m"),
        ("https://h/v1?api_key=lovelace&a=b#m", "https://h/v1#m"),
        ("https://h?api_key=lovelace", "https://h"),
        ("postgresql://ada:lovelace@h/db?password=lovelace", "postgresql://h/db"),
        ("tcp://root:lovelace@h:19530", "tcp://h:19530"),
        ("redis://:12/lovelace@h:6379/0", "redis://h:6379/0"),
        ("rediss://ada:l@ve/love#lace@h:6379/0", "rediss://h:6379/0"),
        ("redis://:l?ve@lovelace@h/0", "redis://h/0"),
        ("postgresql://ada:12/lovelace@h/db?user=a@b", "postgresql://h/db"),
    ],
)
def test_secrets_are_cut_off_and_can_be_had_back(text: str, shown: str) -> None:
    address = Address(text)
    assert str(address) == shown
    assert address.revealed() == text or "/" in PASSWORD
    assert any("love" in secret for secret in address.secrets())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "auto",
        "local:",
        "local:/models/a@b.gguf",
        "openai:ft:gpt-4o:org::id",
        "http://127.0.0.1:8000/v1#a@b:c",
        "http://h/v1#@cf/meta/llama",
        "http://h/v1/@cf/x#m?y",
        "http://[::1]:19530",
        "sqlite:////tmp/a@b?c.sqlite",
        "/home/ada@work/milvus.db",
        "unix:/run/milvus.sock",
        "memory:",
    ],
)
def test_text_without_secrets_stays_as_it_is(text: str) -> None:
    address = Address(text)
    assert (str(address), address.revealed(), address.secrets()) == (text, text, ())
    assert (address.headers(), address.query_params(), address.credentials()) == ({}, {}, "")


def test_client_gets_user_and_query_unescaped() -> None:
    address = Address("http://ada:love%20lace@h/v1?api_key=a%2Bb&v=1#m")
    assert address.headers() == {"Authorization": "Basic YWRhOmxvdmUgbGFjZQ=="}
    assert address.credentials() == "ada:love lace"
    assert address.query_params() == {"api_key": "a+b", "v": "1"}
    assert set(address.secrets()) == {"ada:love lace", "love lace", "YWRhOmxvdmUgbGFjZQ==", "a+b"}


def test_parts_keep_the_secrets() -> None:
    address = Address("http://ada:lovelace@h/v1/#m")
    for part in (address.endpoint, address.joined("search"), Address(address), copy.deepcopy(address)):
        assert "lovelace" in part.revealed()
        assert "lovelace" not in part
    assert (address.model, address.endpoint.joined("search")) == ("m", "http://h/v1/search")
    assert "lovelace" in pickle.loads(pickle.dumps(address)).revealed()


def test_nothing_written_down_of_it_holds_a_secret() -> None:
    class Saved(BaseModel):
        address: Address

    saved = Saved(address=Address("http://ada:lovelace@h/v1#m"))
    for shown in (repr(saved), saved.model_dump_json(), str(saved.model_dump()), json.dumps([saved.address])):
        assert "http://h/v1#m" in shown
        assert "lovelace" not in shown
    assert "lovelace" in Saved.model_validate(dict(saved)).address.revealed()


def test_password_is_no_part_of_what_makes_two_addresses_the_same() -> None:
    one, other = Address("http://ada:lovelace@h/v1"), Address("http://bob:hopper@h/v1?key=x")
    assert (one, hash(one)) == (other, hash(other))


def test_secrets_of_another_address_are_taken_where_there_are_none() -> None:
    secret = Address("http://ada:lovelace@h/v1#m")
    assert "lovelace" in Address("http://h/v1#n").with_secrets_of(secret).revealed()
    assert "lovelace" not in Address("http://bob:hopper@h/v1#n").with_secrets_of(secret).revealed()


def test_urls_among_parameters_become_addresses() -> None:
    params = with_addresses({"model": "http://ada:lovelace@h/v1#m", "k": 60})
    assert params == {"model": "http://h/v1#m", "k": 60}


@given(st.text())
def test_any_text_is_cut_once_and_for_all(text: str) -> None:
    address = Address(text)
    assert Address(str(address)) == address
