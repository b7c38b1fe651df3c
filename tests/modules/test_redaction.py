"""Echoed secrets: each form in which servers and libraries repeat them is starred out."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judgetree.modules.redaction import starred

SECRETS = ["hunter2", "kurz", "sk-proj-0123456789abcdef", "pä ss/wörd+&'\"", "a\\b<c>"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "form",
    [
        str,
        repr,
        json.dumps,
        html.escape,
        quote,
        quote_plus,
        lambda secret: quote(secret, safe=""),
        lambda secret: json.dumps({"detail": f"Bearer {secret} refused"}),
    ],
)
def test_echo_is_starred(secret: str, form: object) -> None:
    echo = form(secret)  # type: ignore[operator]
    shown = starred(f"refused: {echo}, sorry", [secret])
    assert "***" in shown
    assert secret not in shown
    assert echo.strip("'\"") not in shown
    assert shown.startswith("refused: ")
    assert shown.endswith(", sorry")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", ["", "u", "us", "Bearer ", "ada:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_echo_in_base64_is_starred_wherever_the_secret_stands_in_it(secret: str, before: str, encode: object) -> None:
    echo = encode(f"{before}{secret}".encode()).decode()  # type: ignore[operator]
    shown = starred(f"Authorization: Basic {echo}.", [secret])
    assert shown == "Authorization: Basic ***."
    assert starred(f"/v1/{echo}/x", [secret]).count("***") == 1


@pytest.mark.parametrize("secret", ["a", "ab", "x1z"])
def test_short_secret_is_starred_where_it_stands_alone(secret: str) -> None:
    encoded = base64.b64encode(secret.encode()).decode()
    assert starred(f"key={secret}& {encoded} '{secret}'", [secret]).count("***") == 3
    assert starred("a crab is able to fix1z", [secret]).endswith(" crab is able to fix1z")


def test_text_without_echo_stays_as_it_is() -> None:
    assert starred("HTTP 500: out of memory", ["hunter2", ""]) == "HTTP 500: out of memory"
    assert starred("HTTP 500", []) == "HTTP 500"


@given(secret=st.text(min_size=4, max_size=40), before=st.text(max_size=20), behind=st.text(max_size=20))
def test_no_secret_survives(secret: str, before: str, behind: str) -> None:
    assume("*" not in secret)
    assert secret not in starred(before + secret + behind, [secret])
