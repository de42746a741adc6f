"""One Prometheus scrapes two farms by the chart's monitors, and keeps them apart."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from dashboards.prometheus import Choice, Prometheus
from remy_services.telemetry.catalogue import METRICS, Kind
from tests.chart.rendering import CHART, Rendered, helm, needs_helm
from tests.observability.local_prometheus import SCRAPE_SECONDS, LocalPrometheus
from tests.observability.queries import Tree, dashboards, panel_queries
from tests.waiting import wait_until

pytestmark = needs_helm

NAMESPACE = "research"
#: All metrics of a farm have this value. Jobs have the same ID and name in both farms.
VALUES = {"blue": 1, "green": 2}
_LABELS = {"state": "RUNNING", "job_id": "7", "job_name": "night", "reason": "lost"}
_ONE_GAUGE = re.compile(r"(?:sum|max|min)(?: by \([^)]*\))? ?\((remy_farm_\w+)\{[^}]*\}\)")


def exposition(value: int) -> bytes:
    """Returns a page with every metric of a coordinator, all with this value."""
    lines = []
    for metric in METRICS:
        labels = {label: _LABELS.get(label, "any") for label in metric.labels}
        for name in metric.series:
            of_bucket = {"le": "+Inf"} if name.endswith("_bucket") else {}
            shown = ",".join(f'{key}="{text}"' for key, text in (labels | of_bucket).items())
            lines.append(f"{name}{{{shown}}} {value}\n")
    return "".join(lines).encode()


@contextmanager
def coordinator(value: int) -> Iterator[str]:
    """Serves a coordinator's metrics and yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(exposition(value))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def release(farm: str) -> Rendered:
    wanted = ("serviceMonitor", "prometheusRule")
    flags = [f"--set=monitoring.{name}.enabled=true" for name in wanted]
    done = helm(
        *("template", farm, str(CHART), "--namespace", NAMESPACE),
        *(f"--set=fullnameOverride={farm}", *flags),
    )
    assert done.returncode == 0, done.stderr
    return Rendered(done.stdout)


def scraped(farm: str, rendered: Rendered, address: str) -> Tree:
    """Returns the scrape configuration that the operator derives from a ServiceMonitor."""
    (endpoint,) = rendered.one("ServiceMonitor")["spec"]["endpoints"]
    return {
        "job_name": farm,
        "static_configs": [{"targets": [address], "labels": {"namespace": NAMESPACE}}],
        "relabel_configs": [
            {"target_label": each["targetLabel"], "replacement": each["replacement"]}
            for each in endpoint["relabelings"]
        ],
    }


def chosen(farm: str) -> Choice:
    now = time.time()
    return Choice({"7": "night"}, now - 60, now, SCRAPE_SECONDS, namespace=NAMESPACE, farm=farm)


def test_one_prometheus_keeps_two_farms_apart(tmp_path: Path) -> None:
    with ExitStack() as ending, ExitStack() as of_green:
        configs, rules = [], []
        for farm, value in VALUES.items():
            exporter = coordinator(value)
            address = (of_green if farm == "green" else ending).enter_context(exporter)
            rendered = release(farm)
            configs.append(scraped(farm, rendered, address))
            rules.append(tmp_path / f"{farm}.yaml")
            groups = rendered.one("PrometheusRule")["spec"]["groups"]
            rules[-1].write_text(yaml.safe_dump({"groups": groups}))
        prometheus = ending.enter_context(LocalPrometheus(tmp_path, configs, rules))
        wait_until(partial(all_rules_are_evaluated, prometheus))
        check_choices(prometheus)
        check_jobs_are_separate(prometheus)
        check_values_are_of_one_farm(prometheus)
        check_recording_rules_are_separate(prometheus)
        of_green.close()
        wait_until(lambda: absent_farms(prometheus) == {"green"})


def all_rules_are_evaluated(prometheus: Prometheus) -> bool:
    """Whether all rules were evaluated after the first scrapes, without an error."""
    groups = prometheus.get("rules")["groups"]
    health = {rule["health"] for group in groups for rule in group["rules"]}
    assert "err" not in health
    recorded = prometheus.instant("job_id:remy_farm_job_running:bool", time.time())
    return health == {"ok"} and len(recorded) == len(VALUES)


def check_choices(prometheus: Prometheus) -> None:
    for tree in dashboards().values():
        offered = {each["name"]: each["query"] for each in tree["templating"]["list"]}
        for name, values in (("namespace", [NAMESPACE]), ("farm", sorted(VALUES))):
            series, label = offered[name].removeprefix("label_values(")[:-1].rsplit(", ", 1)
            asked = {"match[]": chosen("blue").expression(series)}
            assert prometheus.get(f"label/{label}/values", **asked) == values


def check_jobs_are_separate(prometheus: Prometheus) -> None:
    stranger, at_home = chosen("red"), chosen("blue")
    seen = 0
    for query in panel_queries():
        asked = stranger.expression(query.expression)
        assert prometheus.instant(asked, stranger.end) == [], query
        seen += bool(prometheus.instant(at_home.expression(query.expression), at_home.end))
    assert seen > 40


def check_values_are_of_one_farm(prometheus: Prometheus) -> None:
    gauges = {metric.name for metric in METRICS if metric.kind is Kind.GAUGE}
    compared = 0
    for query in panel_queries():
        found = _ONE_GAUGE.fullmatch(query.expression)
        if found and found[1] in gauges:
            for farm, value in VALUES.items():
                choice = chosen(farm)
                series = prometheus.instant(choice.expression(query.expression), choice.end)
                assert [point for each in series for _, point in each.points] in ([value], []), (
                    query
                )
                compared += len(series)
    assert compared > 40


def check_recording_rules_are_separate(prometheus: Prometheus) -> None:
    (*running,) = prometheus.instant("job_id:remy_farm_job_running:bool", time.time())
    values = {each.labels["farm"]: each.points[0][1] for each in running}
    assert values == VALUES
    assert {each.labels["namespace"] for each in running} == {NAMESPACE}


def absent_farms(prometheus: Prometheus) -> set[str]:
    """Returns the farms whose alert for an absent coordinator is pending or firing."""
    return {
        alert["labels"]["farm"]
        for alert in prometheus.get("alerts")["alerts"]
        if alert["labels"]["alertname"] == "RemyFarmCoordinatorAbsent"
    }
