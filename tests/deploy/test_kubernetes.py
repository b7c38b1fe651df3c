"""The manifests: their schemas, and that selectors, ports, probes and secrets fit each other."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from judgetree.app.server.application import create_app
from judgetree.modules.settings import load_settings
from tests.deploy.files import DEPLOY, container, of, pods, resource, resources


@pytest.mark.parametrize("thing", resources(), ids=lambda thing: f"{thing['kind']}-{thing['metadata']['name']}")
def test_it_keeps_the_schema_of_kubernetes(thing: dict[str, Any]) -> None:
    assert kubernetes_validate.validate(thing, "1.37", strict=True) == "1.37"


def test_the_service_and_the_budget_find_the_pods_of_the_deployment_alone() -> None:
    labels = resource("Deployment")["spec"]["template"]["metadata"]["labels"]
    selectors = (
        resource("Service")["spec"]["selector"],
        resource("Deployment")["spec"]["selector"]["matchLabels"],
        resource("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    )
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= resource("Pod")["metadata"]["labels"].items()
    assert resource("Deployment")["spec"]["replicas"] > resource("PodDisruptionBudget")["spec"]["minAvailable"]


def test_probes_and_service_ask_at_the_port_of_the_server() -> None:
    server = container(pods()["Deployment"])
    (exposed,) = (each.rest for each in of("EXPOSE"))
    (port,) = server["ports"]
    assert str(port["containerPort"]) == exposed
    probes = {name: server[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["path"] for probe in probes.values()} <= create_app(load_settings()).openapi()["paths"].keys()
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    (entry,) = resource("Service")["spec"]["ports"]
    assert entry["targetPort"] == port["name"]
    assert f"--allowed-host={resource('Service')['metadata']['name']}" in server["args"]
    assert any(arg.startswith("--trusted-proxies=") for arg in server["args"]), "an ingress is one address"


@pytest.mark.parametrize("kind", pods())
def test_a_pod_is_not_root_and_writes_to_its_volumes_alone(kind: str) -> None:
    pod, server = pods()[kind], container(pods()[kind])
    ((user, group),) = (each.rest.split(":") for each in of("USER"))
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (int(user), int(group))
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {mount["mountPath"]: mount["name"] for mount in server["volumeMounts"]}
    assert set(mounted) == {"/tmp", "/var/lib/judgetree"}
    assert set(mounted.values()) == {volume["name"] for volume in pod["volumes"]}
    assert {"cpu", "memory"} <= server["resources"]["requests"].keys()
    assert "memory" in server["resources"]["limits"]


@pytest.mark.parametrize("kind", pods())
def test_a_pod_has_no_variables_of_services(kind: str) -> None:
    """A service called judgetree would set ``JUDGETREE_PORT`` and others of the prefix of our settings."""
    assert pods()[kind]["enableServiceLinks"] is False


@pytest.mark.parametrize("kind", pods())
def test_settings_come_from_the_map_and_the_secret(kind: str) -> None:
    from_map, from_secret = container(pods()[kind])["envFrom"]
    assert from_map["configMapRef"]["name"] == resource("ConfigMap")["metadata"]["name"]
    secret = from_secret["secretRef"]["name"]
    assert f"kubectl create secret generic {secret} " in (DEPLOY / "README.md").read_text(encoding="utf-8")
    assert "Secret" not in {each["kind"] for each in resources()}
