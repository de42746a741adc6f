"""With the values of `deploy/gitops` the chart renders no Secret; operators create them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from benchmarks.programs import ROOT
from remy_services.coordinator.access import Role
from tests.chart.operators import SCHEMAS
from tests.chart.rendering import CHART, EVERYTHING, Rendered, helm, needs_helm, render

pytestmark = needs_helm

FOLDER = ROOT / "deploy" / "gitops"
EXTERNAL: list[Any] = list(yaml.safe_load_all((FOLDER / "external-secrets.yaml").read_text()))


def rendered() -> Rendered:
    return render({}, f"--values={FOLDER / 'values.yaml'}")


def used_keys(pods: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str | None]]:
    """Yields the Secrets that pods use, with the key; the key is None if they use all keys."""
    for pod in pods.values():
        volumes = pod.get("volumes", [])
        projected = [
            source for each in volumes for source in each.get("projected", {}).get("sources", [])
        ]
        for each in [*volumes, *projected]:
            if secret := each.get("secret"):
                name = secret.get("secretName") or secret["name"]
                yield from ((name, item["key"]) for item in secret.get("items", [{"key": None}]))
        for container in pod["containers"]:
            for variable in container.get("env", []):
                if secret := variable.get("valueFrom", {}).get("secretKeyRef"):
                    yield secret["name"], secret["key"]
            for source in container.get("envFrom", []):
                yield source["secretRef"]["name"], None


def test_rendering_is_reproducible_and_has_no_secret() -> None:
    command = ("template", "farm", str(CHART), f"--values={FOLDER / 'values.yaml'}")
    first, second = (helm(*command).stdout for _ in range(2))
    assert first == second
    assert "kind: Deployment" in first
    assert "kind: Secret" not in first


def test_operators_create_every_key_that_a_pod_uses() -> None:
    found = rendered()
    made: dict[str, set[str] | None] = {
        each["spec"]["secretName"]: {"tls.crt", "tls.key", "ca.crt"}
        for each in found.all("Certificate")
    }
    for each in EXTERNAL:
        target = each["spec"]["target"]
        made[target["name"]] = set(target["template"]["data"]) if "template" in target else None
    needed = set(used_keys(found.pods()))
    assert {name for name, _ in needed} | {"farm-remy-farm-authority"} == set(made)
    for name, key in needed:
        keys = made[name]
        assert keys is None or key is None or key in keys, (name, key)


def test_there_is_a_token_for_each_role() -> None:
    (tokens,) = (each for each in EXTERNAL if each["metadata"]["name"] == "farm-tokens")
    data = tokens["spec"]["target"]["template"]["data"]
    listed = yaml.safe_load(data["tokens.yaml"])["tokens"]
    assert {each["role"] for each in listed} == set(Role)
    for each in listed:
        assert data[each["file"]] == "{{ ." + each["role"] + " }}"


def test_redis_and_its_clients_have_the_same_password() -> None:
    (redis,) = (each for each in EXTERNAL if each["metadata"]["name"] == "farm-redis")
    data = redis["spec"]["target"]["template"]["data"]
    assert data["redis.conf"] == f"requirepass {data['password']}\n"
    asked = {each["secretKey"] for each in redis["spec"]["data"]}
    assert set(re.findall(r"\{\{ \.(\w+) \}\}", str(data))) == asked


@pytest.mark.parametrize("values", [FOLDER / "values.yaml", EVERYTHING], ids=lambda path: path.stem)
def test_operators_objects_are_valid(values: object) -> None:
    objects = [*EXTERNAL, *render({}, f"--values={values}").objects]
    checked = [each for each in objects if each["kind"] in SCHEMAS]
    assert len(checked) > len(EXTERNAL)
    for each in checked:
        jsonschema.validate(each, SCHEMAS[each["kind"]])


def test_unknown_field_is_refused() -> None:
    (certificate, *_) = rendered().all("Certificate")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {**certificate, "spec": {**certificate["spec"], "dnsName": "x"}}, SCHEMAS["Certificate"]
        )
