"""Requests a minute, of keys and of addresses."""

from __future__ import annotations

from pathlib import Path

from judgetree.app.server.safety.request_rate import RequestRate
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.server.safety.conftest import Running
from tests.app.server.serving import serving


def test_a_bucket_fills_up_again() -> None:
    now = [0.0]
    rate = RequestRate(60, clock=lambda: now[0])
    assert [rate.take("a") for _ in range(60)] == [0.0] * 60
    assert rate.take("a") == 1.0
    assert rate.take("b") == 0.0
    now[0] = 1.0
    assert rate.take("a") == 0.0
    assert rate.take("a") > 0
    now[0] = 1000.0
    assert [rate.take("a") for _ in range(61)][-1] == 1.0


def test_senders_share_bounded_memory_and_an_ipv6_network_is_one() -> None:
    rate = RequestRate(1)
    for i in range(20_000):
        rate.check({"path": "/", "client": (f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", 1)}, "")
    assert len(rate._buckets) == 10_000
    rate.check({"path": "/", "client": ("2001:db8::1", 1)}, "")
    assert rate.take("20010db800000000/64") > 0


def test_further_requests_are_refused_with_when_to_come_again(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    with (
        serving(settings, ServerOptions(requests_per_minute=3)) as url,
        Running(url=url, settings=settings).http() as http,
    ):
        answers = [http.get("/v1/models") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) in range(1, 21)
        assert answers[-1].json()["error"]["type"] == "rate_limit_error"
        assert http.get("/healthz").status_code != 429
