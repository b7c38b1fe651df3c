"""The compose file: its schema, the way to the servers, and the time that they get to end."""

from __future__ import annotations

import re
import subprocess
import sys
from ipaddress import ip_network

import pytest

from tests.deploy.files import DEPLOY, compose, env_file, filled_in, of, servers


def test_it_keeps_the_schema_of_compose() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, str(DEPLOY / "compose.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_proxy_knows_every_server_by_its_port() -> None:
    caddy = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    (exposed,) = (each.rest for each in of("EXPOSE"))
    assert len(servers()) >= 2
    (upstreams,) = re.findall(r"reverse_proxy (.*) \{", caddy)
    assert upstreams.split() == [f"{name}:{exposed}" for name in servers()]
    proxy = compose()["services"]["proxy"]
    assert set(proxy["depends_on"]) == set(servers())
    (published,) = (filled_in(port) for port in proxy["ports"])
    assert published.startswith("127.0.0.1:")
    assert f"\n:{published.rpartition(':')[2]} {{" in caddy


def test_only_the_proxy_is_published_and_the_stores_are_reached_by_servers_alone() -> None:
    services = compose()["services"]
    assert [name for name, each in services.items() if "ports" in each] == ["proxy"]
    assert compose()["networks"]["stores"] == {"internal": True}
    assert {name for name, each in services.items() if each.get("networks") == ["stores"]} == {"postgres", "milvus"}
    assert {name for name, each in services.items() if "stores" in each.get("networks", ())} == {
        "postgres",
        "milvus",
        *servers(),
    }


def test_a_server_starts_after_its_stores_and_writes_to_its_volumes_alone() -> None:
    home = next(re.findall(r"JUDGETREE_HOME=(\S+)", each.rest) for each in of("ENV") if "JUDGETREE_HOME" in each.rest)
    for server in servers().values():
        assert server["read_only"] is True
        assert server["cap_drop"] == ["ALL"]
        assert server["volumes"] == [f"home:{home[0]}"]
        stores = {name: server["depends_on"][name]["condition"] for name in ("postgres", "milvus")}
        assert set(stores.values()) == {"service_healthy"}
        assert all("healthcheck" in compose()["services"][name] for name in stores)
        for variable in ("JUDGETREE_CHECKPOINTS", "JUDGETREE_MILVUS_URI"):
            assert re.search(r"//([a-z]+):\d+", server["environment"][variable])[1] in stores  # type: ignore[index]
    volumes = [each.partition(":")[0] for service in compose()["services"].values() for each in service["volumes"]]
    assert set(volumes) - {"./Caddyfile"} == set(compose()["volumes"])


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))))
def test_each_variable_stands_in_the_example(name: str) -> None:
    assert name in env_file(DEPLOY / "env.example")


def test_the_servers_believe_the_network_of_the_proxy() -> None:
    (network,) = compose()["networks"]["default"]["ipam"]["config"]
    assert "networks" not in compose()["services"]["proxy"]  # and so in the default one
    for server in servers().values():
        assert f"--trusted-proxies={network['subnet']}" in server["command"]
        assert ip_network(filled_in(network["subnet"])).is_private
