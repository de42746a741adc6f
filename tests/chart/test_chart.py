"""The chart renders the right objects from its values."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from benchmarks.programs import ROOT
from remy_cli.ui import command as page_command
from remy_rpc.channel import CLIENT_PING_SECONDS, PING_TIMEOUT_SECONDS
from remy_services.kubernetes.manifest import (
    JOB_VARIABLE,
    LauncherSettings,
    QueuePriority,
    read_settings,
    threads_of,
)
from remy_services.kubernetes.observed import INTERRUPTED, UNSEEN
from remy_workers.command import command as worker_command
from remy_workers.settings import ExitCode, parse_settings
from remy_workers.worker import RETRY
from tests.chart.rendering import CHART, EVERYTHING, Rendered, helm, needs_helm, refusal, render

EGRESS = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
MONITORS = ("serviceMonitor", "podMonitor")
BACKENDS = ("jobs", "deployment", "ray")


def test_generated_files_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/chart.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_values_for_lint_set_every_option() -> None:
    """An option that is set nowhere would not be tested."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    everything = yaml.safe_load(EVERYTHING.read_text(encoding="utf-8"))
    assert paths(defaults) - paths(everything) == set()


def paths(tree: Any, before: str = "") -> set[str]:
    """Returns the paths of all keys."""
    if not isinstance(tree, dict):
        return {before}
    below = {path for key, value in tree.items() for path in paths(value, f"{before}.{key}")}
    return {before} | below


@needs_helm
class TestEverything:
    @pytest.mark.parametrize("flags", [(), ("--values", str(EVERYTHING))], ids=["plain", "all"])
    def test_lint_passes(self, flags: tuple[str, ...]) -> None:
        done = helm("lint", "--strict", str(CHART), *flags)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_values_for_eks_render(self) -> None:
        folder = ROOT / "deploy" / "eks"
        on_ebs = render({}, "--values", str(folder / "values.yaml"))
        assert "StatefulSet" in on_ebs.kinds()
        elsewhere = ("values.yaml", "values-elasticache.yaml")
        rendered = render({}, *(f"--values={folder / name}" for name in elsewhere))
        assert "StatefulSet" not in rendered.kinds()

    def test_every_option_renders(self) -> None:
        render({}, "--values", str(EVERYTHING))

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_every_backend_renders(self, backend: str) -> None:
        render({"workers": {"backend": backend}})

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"replicas": 2}, "replicas"),
            ({"coordinator": {"serviceport": 1}}, "serviceport"),
            ({"workers": {"backend": "slurm"}}, "backend"),
            ({"workers": {"jobs": {"minimum": 0}}}, "minimum"),
            ({"redis": {"enabled": False}}, "redis.external.url is required"),
            ({"ui": {"replicas": 2}}, "replicas"),
        ],
    )
    def test_invalid_values_are_refused(self, values: dict[str, Any], words: str) -> None:
        assert words in refusal(values)


def variants() -> list[dict[str, Any]]:
    return [{"workers": {"backend": backend}, "ui": {"enabled": True}} for backend in BACKENDS]


@needs_helm
class TestPods:
    """Properties of all pods with every backend."""

    @pytest.mark.parametrize("values", variants(), ids=BACKENDS)
    def test_pods_meet_the_restricted_pod_security_standard(self, values: dict[str, Any]) -> None:
        for name, pod in render(values).pods().items():
            assert pod["securityContext"]["runAsNonRoot"] is True, name
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
            for container in pod["containers"] + pod.get("initContainers", []):
                security = container["securityContext"]
                assert security["allowPrivilegeEscalation"] is False, name
                assert security["readOnlyRootFilesystem"] is True, name
                assert security["capabilities"] == {"drop": ["ALL"]}, name
                assert not any("hostPath" in volume for volume in pod.get("volumes", [])), name

    @pytest.mark.parametrize("values", variants(), ids=BACKENDS)
    def test_pods_have_cpu_requests_and_memory_limits(self, values: dict[str, Any]) -> None:
        for name, pod in render(values).pods().items():
            for container in pod["containers"]:
                assert "cpu" in container["resources"]["requests"], name
                assert "memory" in container["resources"]["limits"], name

    @pytest.mark.parametrize("values", variants(), ids=BACKENDS)
    def test_only_a_coordinator_that_starts_jobs_has_a_service_account_token(
        self, values: dict[str, Any]
    ) -> None:
        rendered = render(values)
        speakers = [
            name
            for name, pod in rendered.pods().items()
            if pod.get("automountServiceAccountToken") is not False
        ]
        jobs = values["workers"]["backend"] == "jobs"
        assert speakers == (["Deployment/farm-remy-farm-coordinator"] if jobs else [])
        assert ("Role" in rendered.kinds()) is jobs

    @pytest.mark.parametrize("values", variants(), ids=BACKENDS)
    def test_secrets_are_neither_arguments_nor_literal_variables(
        self, values: dict[str, Any]
    ) -> None:
        rendered = render(values)
        secrets = [
            value
            for secret in rendered.all("Secret")
            for key, value in secret.get("stringData", {}).items()
            if not key.endswith((".yaml", ".conf"))
        ]
        assert len(secrets) == 5
        for name, pod in rendered.pods().items():
            text = yaml.safe_dump(pod)
            assert not [secret for secret in secrets if secret in text], name

    def test_extra_variables_volumes_and_placement_reach_their_pods(self) -> None:
        rendered = render({}, "--values", str(EVERYTHING))
        pods = rendered.pods()
        coordinator = pods["Deployment/everything-coordinator"]
        worker = pods["Job/launcher"]
        for pod, variable, volume in (
            (coordinator, "OTEL_EXPORTER_OTLP_ENDPOINT", "more"),
            (worker, "X", "scratch"),
        ):
            container = pod["containers"][0]
            assert variable in [each["name"] for each in container["env"]]
            assert volume in [each["name"] for each in pod["volumes"]]
            assert volume in [each["name"] for each in container["volumeMounts"]]
            assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert worker["nodeSelector"] == {"pool": "workers"}
        assert worker["affinity"] == {"podAntiAffinity": {}}
        assert coordinator["containers"][0]["image"] == "registry.example/team/coordinator:2"
        assert worker["containers"][0]["image"] == "registry.example/team/worker:3"


@needs_helm
class TestClusterRules:
    """Settings for the rules of a particular cluster."""

    @pytest.mark.parametrize("values", variants(), ids=BACKENDS)
    def test_user_and_group_ids_can_be_removed_for_openshift(self, values: dict[str, Any]) -> None:
        nobody = {"podSecurityContext": dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"))}
        rendered = render(
            {
                "coordinator": nobody,
                "ui": values["ui"] | nobody,
                "workers": values["workers"] | nobody,
                "redis": {"user": None},
            }
        )
        for name, pod in rendered.pods().items():
            assert pod["securityContext"] == {
                "runAsNonRoot": True,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            }, name

    @pytest.mark.parametrize("values", variants(), ids=BACKENDS)
    def test_default_user_and_group_ids(self, values: dict[str, Any]) -> None:
        for name, pod in render(values).pods().items():
            user = 999 if name.startswith("StatefulSet") else 10001
            ids = {pod["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")}
            assert ids == {user}, name

    def test_container_security_context_can_be_set(self) -> None:
        for name, pod in render({}, "--values", str(EVERYTHING)).pods().items():
            containers = [each for each in pod["containers"] if each["name"] != "beside"]
            for container in containers:
                assert container["securityContext"]["readOnlyRootFilesystem"] is False, name

    @pytest.mark.parametrize("values", variants(), ids=BACKENDS)
    def test_existing_priority_class_is_used(self, values: dict[str, Any]) -> None:
        named = {"priorityClassName": "house"}
        rendered = render(
            {
                "priorityClasses": {"create": False},
                "coordinator": named,
                "ui": values["ui"] | named,
                "workers": values["workers"] | named,
                "redis": named,
            }
        )
        assert "PriorityClass" not in rendered.kinds()
        pods = rendered.pods()
        pods.pop("Pod/farm-remy-farm-test")
        assert {pod["priorityClassName"] for pod in pods.values()} == {"house"}

    def test_image_digest_overrides_the_tag(self) -> None:
        digest = "sha256:" + "ab" * 32
        image = {"image": {"digest": digest, "tag": "9"}}
        rendered = render({"coordinator": image, "workers": image, "redis": image})
        images = {pod["containers"][0]["image"] for pod in rendered.pods().values()}
        assert images == {
            f"{name}@{digest}"
            for name in ("remy-farm-coordinator", "remy-farm-worker", "docker.io/library/redis")
        }
        assert "digest" in refusal({"redis": {"image": {"digest": "latest"}}})

    def test_extra_init_containers_and_sidecars_are_rendered(self) -> None:
        pods = render({}, "--values", str(EVERYTHING)).pods()
        for name in ("Deployment/everything-coordinator", "StatefulSet/everything-redis"):
            assert [each["name"] for each in pods[name]["containers"]][1:] == ["beside"]
            assert [each["name"] for each in pods[name]["initContainers"]] == ["fetch"]
        # A sidecar of a worker would keep its Job from ending.
        assert [each["name"] for each in pods["Job/launcher"]["containers"]] == ["worker"]
        assert [each["name"] for each in pods["Job/launcher"]["initContainers"]] == ["fetch"]

    def test_extra_objects_are_rendered(self) -> None:
        more = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "{{ .Release.Name }}-more"},
        }
        assert (
            render({"extraObjects": [more, more]})
            .all("ConfigMap")
            .count(more | {"metadata": {"name": "farm-more"}})
            == 2
        )


@needs_helm
class TestCoordinator:
    def test_coordinator_has_one_replica_and_is_recreated(self) -> None:
        spec = render().one("Deployment", "-coordinator")["spec"]
        assert spec["replicas"] == 1
        assert spec["strategy"] == {"type": "Recreate"}

    def test_coordinator_s_role_has_the_least_privileges(self) -> None:
        rules = render().one("Role")["rules"]
        assert [(rule["resources"], rule.get("resourceNames")) for rule in rules] == [
            (["jobs"], None),
            (["pods"], None),
            (["deployments"], ["farm-remy-farm-coordinator"]),
        ]
        verbs = {verb for rule in rules[1:] for verb in rule["verbs"]}
        assert verbs == {"list", "watch", "get"}
        assert "ClusterRole" not in render().kinds()

    def test_coordinator_prefers_on_demand_nodes_and_leaves_unreachable_ones(self) -> None:
        pod = render().pods()["Deployment/farm-remy-farm-coordinator"]
        (first, *_) = pod["affinity"]["nodeAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        assert first["preference"]["matchExpressions"][0]["values"] == ["on-demand"]
        seconds = {each["key"]: each.get("tolerationSeconds") for each in pod["tolerations"]}
        assert seconds["node.kubernetes.io/unreachable"] == 5

    def test_changed_worker_settings_restart_the_coordinator(self) -> None:
        def checksum(values: dict[str, Any]) -> str:
            deployment = render(values).one("Deployment", "-coordinator")
            annotations = deployment["spec"]["template"]["metadata"]["annotations"]
            return str(annotations["remy-farm/launcher-sha256"])

        assert checksum({}) != checksum({"workers": {"jobs": {"maximum": 11}}})


@needs_helm
class TestWorkerJobs:
    def test_launcher_reads_the_rendered_settings(self, tmp_path: Path) -> None:
        settings = launcher_settings(render(), tmp_path)
        assert settings.instance == "farm-remy-farm"
        assert settings.owner_deployment == "farm-remy-farm-coordinator"
        assert settings.maximum_workers == 10
        everything = launcher_settings(render({}, "--values", str(EVERYTHING)), tmp_path)
        assert everything.limits.images == ("registry.example/team/*",)
        assert everything.limits.memory_mib == 8192

    def test_pod_failure_policy_ignores_preemption_and_fails_on_defects(self) -> None:
        spec = render().launcher()["template"]["spec"]
        defects, disrupted, interrupted, unseen = spec["podFailurePolicy"]["rules"]
        assert defects["action"] == "FailJob"
        # Exit codes of errors that would occur on every node.
        assert defects["onExitCodes"]["values"] == [
            ExitCode.BAD_INPUT,
            ExitCode.NOT_ALLOWED,
            ExitCode.UNSUITABLE,
        ]
        # The runbook names these exit codes.
        page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text("utf-8")
        symptoms = page.partition("## When something is wrong")[2]
        assert f"| workers end with {ExitCode.UNSUITABLE} | their log | their version" in symptoms
        assert f"| workers end with {ExitCode.NOT_ALLOWED} | their log | the token" in symptoms
        assert disrupted == {
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
        assert interrupted["action"] == "Ignore"
        assert interrupted["onExitCodes"]["values"] == [INTERRUPTED]
        assert unseen["action"] == "Ignore"
        assert unseen["onExitCodes"]["values"] == [UNSEEN]
        assert spec["template"]["spec"]["restartPolicy"] == "Never"
        assert "activeDeadlineSeconds" not in spec

    @pytest.mark.parametrize(
        ("mirror", "reproductions"),
        [
            ("", "/tmp/reproductions"),
            ("s3://bucket/farm/", "s3://bucket/farm/reproductions"),
            ("file:///mirror", "file:///mirror/reproductions"),
        ],
    )
    def test_quarantined_tasks_are_saved_in_the_mirror(
        self, mirror: str, reproductions: str
    ) -> None:
        deployment = render({"mirror": {"url": mirror}}).one("Deployment", "-coordinator")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert f"--reproductions={reproductions}" in container["args"]

    def test_delays_after_a_lost_node_are_the_documented_ones(self) -> None:
        """They add to the 40 to 50 s in which Kubernetes notices an unreachable node."""
        rendered = render()
        coordinator = rendered.one("Deployment", "-coordinator")["spec"]["template"]["spec"]
        workers = rendered.launcher()["template"]["spec"]["template"]["spec"]
        for pod in (coordinator, workers):
            tolerated = {
                each["key"].removeprefix("node.kubernetes.io/"): each["tolerationSeconds"]
                for each in pod["tolerations"]
                if each.get("effect") == "NoExecute"
            }
            assert tolerated == {"unreachable": 5, "not-ready": 5}
        (container,) = coordinator["containers"]
        periods = [container[f"{kind}Probe"]["periodSeconds"] for kind in ("startup", "readiness")]
        assert periods == [1, 2]
        # The probe's short period does not reduce the time for a slow start.
        assert container["startupProbe"]["failureThreshold"] == 120
        page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text("utf-8")
        table = page.partition("## A lost node")[2].partition("\n\n*")[0]
        assert "(`coordinator.unreachableSeconds`) | 5 |" in table
        assert "probes look every 1 and 2 s" in table
        assert f"a worker calls again | at most {RETRY.most_seconds:g} |" in table
        # Connected clients notice a lost node by pings, earlier than Kubernetes.
        assert CLIENT_PING_SECONDS + PING_TIMEOUT_SECONDS == 40

    def test_queue_name_is_only_on_worker_jobs(self) -> None:
        rendered = render({"workers": {"jobs": {"queueName": "spot"}}})
        label = "kueue.x-k8s.io/queue-name"
        assert rendered.launcher()["template"]["metadata"]["labels"][label] == "spot"
        assert label not in yaml.safe_dump([each["metadata"] for each in rendered.objects])

    def test_launcher_reads_queue_priorities(self, tmp_path: Path) -> None:
        classes = [
            {"atLeast": -1, "workloadPriorityClass": "night"},
            {"atLeast": 5, "workloadPriorityClass": "day"},
        ]
        rendered = render({"workers": {"jobs": {"queueName": "spot", "queuePriorities": classes}}})
        read = launcher_settings(rendered, tmp_path).queue_priorities
        assert read == (QueuePriority(-1, "night"), QueuePriority(5, "day"))

    @pytest.mark.parametrize("backend", ["jobs", "deployment"])
    @pytest.mark.parametrize(("cpu", "threads"), [("1", 1), ("3500m", 4), ("6", 6)])
    def test_worker_has_one_thread_per_requested_cpu(
        self, backend: str, cpu: str, threads: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The number of the node's CPUs does not matter."""
        monkeypatch.setattr("remy_workers.settings.allowed_cpus", lambda: 64)
        resources = {"requests": {"cpu": cpu}}
        rendered = render({"workers": {"backend": backend, "resources": resources}})
        kind = "Job/launcher" if backend == "jobs" else "Deployment/farm-remy-farm-workers"
        pod = rendered.pods()[kind]
        for name, value in from_downward_api(pod["containers"][0]).items():
            monkeypatch.setenv(name, value)
        with worker_command.make_context(
            "worker", ["--coordinator=here:1", "--insecure"]
        ) as context:
            assert parse_settings(context.params).threads == threads
        assert threads_of({"spec": {"template": {"spec": pod}}}) == threads

    def test_chart_leaves_the_job_variable_to_the_launcher(self) -> None:
        pod = render().pods()["Job/launcher"]
        assert JOB_VARIABLE not in [each["name"] for each in pod["containers"][0]["env"]]

    def test_workers_prefer_spot_nodes_and_spread_over_zones(self) -> None:
        pod = render().pods()["Job/launcher"]
        (first, *_) = pod["affinity"]["nodeAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        assert first["preference"]["matchExpressions"][0]["values"] == ["spot"]
        (spread,) = pod["topologySpreadConstraints"]
        labels = render().launcher()["template"]["spec"]["template"]["metadata"]["labels"]
        assert spread["labelSelector"]["matchLabels"].items() <= labels.items()


def from_downward_api(container: dict[str, Any]) -> dict[str, str]:
    """Returns the variables with CPU counts as the kubelet sets them, which rounds up."""
    found = {}
    for each in container["env"]:
        reference = each.get("valueFrom", {}).get("resourceFieldRef")
        if reference is not None:
            assert reference["containerName"] == container["name"]
            kind, resource = reference["resource"].split(".")
            text = str(container["resources"][kind][resource])
            cpus = float(text.rstrip("m")) / (1000 if text.endswith("m") else 1)
            found[each["name"]] = str(math.ceil(cpus))
    return found


def launcher_settings(rendered: Rendered, folder: Path) -> LauncherSettings:
    path = folder / "launcher.yaml"
    path.write_text(yaml.safe_dump(rendered.launcher()), encoding="utf-8")
    return read_settings(path)


@needs_helm
class TestRedis:
    def test_redis_acknowledges_only_durable_writes(self) -> None:
        text = render().one("ConfigMap", "-redis")["data"]["redis.conf"]
        assert "appendonly yes" in text
        assert "appendfsync always" in text
        assert "maxmemory-policy noeviction" in text

    def test_redis_volume_is_retained_by_default(self) -> None:
        policy = "persistentVolumeClaimRetentionPolicy"
        kept = render().one("StatefulSet")["spec"][policy]
        assert kept == {"whenDeleted": "Retain", "whenScaled": "Retain"}
        gone = render({"redis": {"persistence": {"retain": False}}})
        assert gone.one("StatefulSet")["spec"][policy]["whenDeleted"] == "Delete"
        assert "annotations" not in gone.one("Secret", "-redis")["metadata"]

    def test_external_redis_replaces_the_bundled_one(self) -> None:
        external = {
            "url": "rediss://cache.example:6380/0",
            "passwordSecret": {"name": "cache"},
            "caSecret": {"name": "cache-ca"},
            "egress": [EGRESS],
        }
        rendered = render({"redis": {"enabled": False, "external": external}})
        assert "StatefulSet" not in rendered.kinds()
        pod = rendered.pods()["Deployment/farm-remy-farm-coordinator"]
        args = pod["containers"][0]["args"]
        assert "--store=rediss://cache.example:6380/0?tls_ca=/etc/remy-farm/redis-ca/ca.crt" in args
        assert {"redis-password", "redis-ca"} <= {each["name"] for each in pod["volumes"]}
        policy = rendered.one("NetworkPolicy", "-coordinator")
        assert EGRESS in policy["spec"]["egress"]


@needs_helm
class TestNetwork:
    def test_network_policies_allow_only_needed_traffic(self) -> None:
        rendered = render()
        deny = rendered.one("NetworkPolicy", "-default-deny")["spec"]
        assert deny["policyTypes"] == ["Ingress", "Egress"]
        assert not {"ingress", "egress"} & set(deny)
        redis = rendered.one("NetworkPolicy", "-redis")["spec"]
        assert "egress" not in redis
        assert peers(redis["ingress"]) == [{"app.kubernetes.io/component": "coordinator"}]
        workers = rendered.one("NetworkPolicy", "-workers")["spec"]
        assert peers(workers["egress"][1:]) == [{"app.kubernetes.io/component": "coordinator"}]

    def test_network_policy_opens_the_ray_port_to_actors(self) -> None:
        nodes = {"ipBlock": {"cidr": "10.2.0.0/16"}}
        rendered = render(
            {"workers": {"backend": "ray"}, "networkPolicy": {"rayNodes": [nodes]}},
        )
        (container,) = rendered.pods()["Deployment/farm-remy-farm-coordinator"]["containers"]
        (port,) = (each["containerPort"] for each in container["ports"] if each["name"] == "ray")
        assert f"--ray-listen=0.0.0.0:{port}" in container["args"]
        ingress = rendered.one("NetworkPolicy", "-coordinator")["spec"]["ingress"]
        opened = {"port": port, "protocol": "TCP"}
        (rule,) = (each for each in ingress if opened in each["ports"])
        ray_pods, others = rule["from"]
        for kind in ("head", "workers"):
            pod = rendered.one("Deployment", f"-ray-{kind}")["spec"]["template"]["metadata"]
            assert ray_pods["podSelector"]["matchLabels"].items() <= pod["labels"].items()
        assert others == nodes
        assert "ray" not in str(render().one("NetworkPolicy", "-coordinator"))

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_network_policy_selects_the_workers(self, backend: str) -> None:
        rendered = render({"workers": {"backend": backend}})
        workers = rendered.one("NetworkPolicy", "-workers")["spec"]["podSelector"]["matchLabels"]
        found = [
            each["spec"]["template"]["metadata"]["labels"]
            for each in rendered.all("Deployment")
            if "worker" in each["metadata"]["name"]
        ]
        if backend == "jobs":
            found = [rendered.launcher()["template"]["spec"]["template"]["metadata"]["labels"]]
        assert found
        assert all(workers.items() <= labels.items() for labels in found)

    def test_load_balancer_does_not_publish_metrics(self) -> None:
        service = {
            "type": "LoadBalancer",
            "loadBalancerClass": "internal",
            "loadBalancerSourceRanges": ["192.0.2.0/24"],
        }
        rendered = render({"coordinator": {"service": service}})
        published = [each["spec"] for each in rendered.all("Service")]
        (balanced,) = [each for each in published if each.get("type") == "LoadBalancer"]
        assert [port["name"] for port in balanced["ports"]] == ["grpc"]
        assert balanced["loadBalancerClass"] == "internal"
        assert balanced["loadBalancerSourceRanges"] == ["192.0.2.0/24"]
        metrics = rendered.one("Service", "-metrics")["spec"]
        assert (metrics["type"], metrics["selector"]) == ("ClusterIP", balanced["selector"])

    def test_network_policy_allows_traffic_from_a_load_balancer(self) -> None:
        def open_to_all(values: dict[str, Any]) -> list[list[int]]:
            rules = render(values).one("NetworkPolicy", "-coordinator")["spec"]["ingress"]
            return [
                [port["port"] for port in rule["ports"]] for rule in rules if "from" not in rule
            ]

        assert open_to_all({}) == []
        assert open_to_all({"coordinator": {"service": {"type": "LoadBalancer"}}}) == [[7390]]

    def test_ingress_and_route_lead_to_the_coordinator(self) -> None:
        ingress = {"enabled": True, "host": "farm.example", "className": "nginx"}
        route = {"enabled": True, "parentRefs": [{"name": "gateway"}]}
        rendered = render({"coordinator": {"ingress": ingress, "grpcRoute": route}})
        service = rendered.one("Service", "-coordinator")
        (rule,) = rendered.one("Ingress")["spec"]["rules"]
        assert rule["host"] == "farm.example"
        (path,) = rule["http"]["paths"]
        assert path["backend"]["service"] == {
            "name": service["metadata"]["name"],
            "port": {"name": service["spec"]["ports"][0]["name"]},
        }
        (routed,) = rendered.one("GRPCRoute")["spec"]["rules"]
        assert routed["backendRefs"] == [{"name": service["metadata"]["name"], "port": 7390}]
        assert "coordinator.ingress.host is required" in refusal(
            {"coordinator": {"ingress": {"enabled": True}}}
        )

    def test_network_policy_allows_pod_identity_for_the_mirror_and_dns_for_all(self) -> None:
        mirrored = {"mirror": {"url": "s3://bucket/farm"}}
        policy = render(mirrored).one("NetworkPolicy", "-coordinator")["spec"]
        agent = {"ipBlock": {"cidr": "169.254.170.23/32"}}
        (found,) = [rule for rule in policy["egress"] if agent in rule.get("to", [])]
        assert found["ports"] == [{"port": 80, "protocol": "TCP"}]
        workers = render(mirrored).one("NetworkPolicy", "-workers")["spec"]
        assert not [rule for rule in workers["egress"] if agent in rule.get("to", [])]
        for each in (policy, workers):
            ports = {port["port"] for port in each["egress"][0]["ports"]}
            assert ports == {53, 5353}

    def test_disabled_egress_rules_are_not_rendered(self) -> None:
        switches = {"dns": False, "podIdentity": False, "objectStore": False}
        rendered = render(
            {
                "mirror": {"url": "s3://bucket/farm"},
                "networkPolicy": {"egressAllowRules": switches},
                "workers": {"backend": "deployment"},
            }
        )
        for name in ("coordinator", "workers"):
            rules = rendered.one("NetworkPolicy", f"-{name}")["spec"]["egress"]
            assert {port["port"] for rule in rules for port in rule["ports"]} <= {6379, 7390}


@needs_helm
class TestPage:
    """The farm's page, which is optional."""

    ENABLED: ClassVar[dict[str, Any]] = {"ui": {"enabled": True}}

    def test_page_is_off_by_default(self) -> None:
        assert "farm-remy-farm-ui" not in json.dumps(render().objects)
        assert "farm-remy-farm-ui" in json.dumps(render(self.ENABLED).objects)

    def test_page_uses_the_coordinator_s_certificate_and_has_no_token(self) -> None:
        rendered = render(self.ENABLED)
        pod = rendered.pods()["Deployment/farm-remy-farm-ui"]
        (container,) = pod["containers"]
        settings = page_settings(container)
        assert not settings["plain"]
        assert str(settings["page_cert"]) == "/etc/remy-farm/tls/tls.crt"
        coordinator = rendered.pods()["Deployment/farm-remy-farm-coordinator"]
        mounted = [each for each in coordinator["volumes"] if each["name"] == "tls"]
        assert [each for each in pod["volumes"] if each["name"] == "tls"] == mounted
        assert "tokens" not in yaml.safe_dump(pod)
        assert pod["automountServiceAccountToken"] is False
        assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"

    def test_page_without_tls_uses_plain_text_on_both_sides(self) -> None:
        rendered = render(self.ENABLED | {"tls": {"enabled": False}})
        (container,) = rendered.pods()["Deployment/farm-remy-farm-ui"]["containers"]
        assert page_settings(container)["plain"]
        assert {"name": "REMY_FARM_INSECURE", "value": "true"} in container["env"]
        assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTP"
        assert rendered.one("Service", "-ui")["spec"]["ports"][0]["name"] == "http"

    def test_page_accepts_the_certified_host_names(self) -> None:
        ingress = {"enabled": True, "host": "farm.example"}
        values = {"ui": {"enabled": True, "hosts": ["page.example"], "ingress": ingress}}
        rendered = render(values | {"tls": {"source": "cert-manager"}})
        (container,) = rendered.pods()["Deployment/farm-remy-farm-ui"]["containers"]
        hosts = set(page_settings(container)["hosts"])
        service = rendered.one("Service", "-ui")["metadata"]["name"]
        assert {"localhost", f"{service}.research.svc", "farm.example", "page.example"} <= hosts
        certified = rendered.one("Certificate", "-tls")["spec"]
        assert hosts <= {*certified["dnsNames"], *certified["ipAddresses"]}
        (rule,) = rendered.one("Ingress")["spec"]["rules"]
        assert rule["host"] == "farm.example"
        (path,) = rule["http"]["paths"]
        assert path["backend"]["service"] == {"name": service, "port": {"name": "https"}}
        refused = {"ui": {"enabled": True, "ingress": {"enabled": True}}}
        assert "ui.ingress.host is required" in refusal(refused)

    def test_network_policies_connect_browsers_page_and_coordinator(self) -> None:
        rendered = render(self.ENABLED)
        policy = rendered.one("NetworkPolicy", "-ui")["spec"]
        labels = rendered.one("Deployment", "-ui")["spec"]["template"]["metadata"]["labels"]
        assert policy["podSelector"]["matchLabels"].items() <= labels.items()
        assert peers(policy["egress"][1:]) == [{"app.kubernetes.io/component": "coordinator"}]
        assert [rule["ports"] for rule in policy["ingress"]] == [
            [{"port": 8443, "protocol": "TCP"}]
        ]
        (clients, *_) = rendered.one("NetworkPolicy", "-coordinator")["spec"]["ingress"]
        asked = [each["podSelector"]["matchLabels"] for each in clients["from"]]
        assert any(each.items() <= labels.items() for each in asked)
        closed = render(self.ENABLED | {"networkPolicy": {"browsers": []}})
        assert not closed.one("NetworkPolicy", "-ui")["spec"].get("ingress")

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_page_uses_the_coordinator_s_image(self, backend: str) -> None:
        pods = render(self.ENABLED | {"workers": {"backend": backend}}).pods()
        images = {
            pods[f"Deployment/farm-remy-farm-{name}"]["containers"][0]["image"]
            for name in ("ui", "coordinator")
        }
        assert len(images) == 1


def page_settings(container: dict[str, Any]) -> dict[str, Any]:
    """Parses the container's arguments with the command `remy-farm ui`."""
    name, *flags = container["args"]
    assert name == "ui"
    (coordinator,) = (
        each["value"] for each in container["env"] if each["name"] == "REMY_FARM_COORDINATOR"
    )
    with page_command.make_context("ui", [*flags, f"--coordinator={coordinator}"]) as context:
        return context.params


def peers(rules: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Returns the component labels of the peers in network policy rules."""
    return [
        {key: value for key, value in labels.items() if key.endswith("component")}
        for rule in rules
        for peer in rule.get("from", []) + rule.get("to", [])
        for labels in [peer["podSelector"]["matchLabels"]]
    ]


@needs_helm
class TestSecrets:
    def test_rendering_with_existing_secrets_is_reproducible(self) -> None:
        """Argo CD renders repeatedly, which must not rotate any secret."""
        values = {
            "tls": {"existingSecret": "farm-tls"},
            "tokens": {"existingSecret": "farm-tokens"},
            "redis": {"existingSecret": "farm-redis"},
            "mirror": {"url": "s3://bucket/farm", "environmentSecret": "farm-bucket"},
        }
        first, second = (
            helm("template", "farm", str(CHART), "--values=-", stdin=json.dumps(values)).stdout
            for _ in range(2)
        )
        assert first == second
        assert "kind: Secret" not in first
        for name in ("farm-tls", "farm-tokens", "farm-redis", "farm-bucket"):
            assert name in first

    def test_rendering_with_cert_manager_has_no_secret(self) -> None:
        rendered = render(
            {
                "tls": {"source": "cert-manager"},
                "tokens": {"existingSecret": "farm-tokens"},
                "redis": {"existingSecret": "farm-redis"},
            }
        )
        assert not rendered.all("Secret")

    def test_certificate_authority_is_mounted_in_no_pod(self) -> None:
        rendered = render()
        assert rendered.one("Secret", "-authority")["data"].keys() == {"tls.crt", "tls.key"}
        assert "-authority" not in yaml.safe_dump(rendered.pods())


@needs_helm
class TestCertificate:
    def test_cert_manager_can_issue_the_certificate(self) -> None:
        rendered = render({"tls": {"source": "cert-manager"}})
        assert len(rendered.all("Certificate")) == 2
        assert len(rendered.all("Issuer")) == 2
        assert not [each for each in rendered.all("Secret") if each["type"] == "kubernetes.io/tls"]

    def test_existing_issuer_is_used(self) -> None:
        rendered = render({"tls": {"source": "cert-manager", "certManager": issuer("corporate")}})
        (certificate,) = rendered.all("Certificate")
        assert certificate["spec"]["issuerRef"] == {"kind": "ClusterIssuer", "name": "corporate"}
        assert not rendered.all("Issuer")

    def test_certificate_names_the_service_and_localhost(self) -> None:
        rendered = render({"tls": {"source": "cert-manager", "extraNames": ["farm.example"]}})
        names = rendered.one("Certificate", "-tls")["spec"]["dnsNames"]
        service = rendered.one("Service", "-coordinator")["metadata"]["name"]
        assert {f"{service}.research.svc", service, "localhost", "farm.example"} <= set(names)


def issuer(name: str) -> dict[str, Any]:
    return {"issuer": {"kind": "ClusterIssuer", "name": name}}


@needs_helm
class TestMonitoring:
    def test_monitoring_objects_are_optional(self) -> None:
        assert not {"ServiceMonitor", "PodMonitor", "PrometheusRule"} & render().kinds()
        rendered = render({}, "--values", str(EVERYTHING))
        rule = rendered.one("PrometheusRule")
        assert rule["metadata"]["labels"]["release"] == "prometheus"
        alerts = [each for group in rule["spec"]["groups"] for each in group["rules"]]
        pages = [each["annotations"]["runbook_url"] for each in alerts if "alert" in each]
        assert pages
        assert all(page.startswith("https://wiki.example/farm#remyfarm") for page in pages)
        boards = [
            each for each in rendered.all("ConfigMap") if "dashboards" in each["metadata"]["labels"]
        ]
        generated = list((ROOT / "dashboards" / "generated").glob("*.json"))
        assert len(boards) == len(generated) > 0

    def test_monitors_select_the_service_and_the_workers(self) -> None:
        rendered = render({"monitoring": {name: {"enabled": True} for name in MONITORS}})
        service = rendered.one("Service", "-metrics")
        monitor = rendered.one("ServiceMonitor")["spec"]
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        ports = {each["name"] for each in service["spec"]["ports"]}
        assert {each["port"] for each in monitor["endpoints"]} <= ports
        pods = rendered.one("PodMonitor")["spec"]
        template = rendered.launcher()["template"]["spec"]["template"]
        assert pods["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()

    def test_each_monitor_can_be_enabled_alone_and_labels_the_farm(self) -> None:
        more = {"targetLabel": "cluster", "replacement": "east"}
        for name, kind in zip(MONITORS, ("ServiceMonitor", "PodMonitor"), strict=True):
            rendered = render({"monitoring": {name: {"enabled": True, "relabelings": [more]}}})
            assert {"ServiceMonitor", "PodMonitor"} & rendered.kinds() == {kind}
            spec = rendered.one(kind)["spec"]
            (endpoint,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
            farm = {"targetLabel": "farm", "replacement": "farm-remy-farm"}
            assert endpoint["relabelings"] == [farm, more]

    def test_pod_monitor_excludes_ray_pods(self) -> None:
        rendered = render(
            {"workers": {"backend": "ray"}}, "--set", "monitoring.podMonitor.enabled=true"
        )
        (without,) = rendered.one("PodMonitor")["spec"]["selector"]["matchExpressions"]
        assert without["operator"] == "DoesNotExist"
        pods = [rendered.one("Deployment", f"-ray-{kind}") for kind in ("head", "workers")]
        for pod in pods:
            assert without["key"] in pod["spec"]["template"]["metadata"]["labels"]
