"""Every query of every panel and rule works on a real Prometheus that scrapes a real farm."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from dashboards.pictures import draw_all
from dashboards.prometheus import Choice, Prometheus, QueryError
from remy_proto.v1 import design_service_pb2 as messages
from services.tests.cli.conftest import SMALL_SPEC
from tests.observability.local_prometheus import SCRAPE_SECONDS
from tests.observability.otlp_receiver import Receiver, otlp_receiver
from tests.observability.queries import (
    PanelQuery,
    dashboards,
    panel_queries,
    recorded_series,
    rules,
)
from tests.observability.watched_farm import WatchedFarm, watched_farm
from tests.waiting import wait_until

# Panels without data: their parts are not in this farm, or their events have not occurred.
_MAY_BE_EMPTY = {
    "Certificate expires in",
    "Done",
    "Pods preempted and failed",
    "Worker pods",
}
# Simulations are long, so that a killed worker has almost always a task.
_ENDLESS = SMALL_SPEC.replace("epochs: 2", "epochs: 1000000").replace(
    "simulated_seconds: 1", "simulated_seconds: 50"
)


def test_every_query_of_every_panel_and_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with otlp_receiver() as receiver, monkeypatch.context() as environment:
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{receiver.address}")
        check_everything(tmp_path, receiver)


def check_everything(folder: Path, receiver: Receiver) -> None:
    with watched_farm(folder) as farm:
        chosen = make_history(farm)
        wait_until(lambda: tasks_and_their_steps(receiver) > 0)
        # The period that is checked has ended.
        (endless,) = (job for job, name in chosen.jobs.items() if name == "endless")
        farm.client.pause(endless)
        assert rejected_queries(farm.prometheus, chosen) == []
        assert panels_without_data(farm.prometheus, chosen) == []
        assert variables_without_jobs(farm.prometheus, chosen) == []
        assert failed_rules(farm.prometheus) == []
        assert recorded_series() <= series_of(farm.prometheus)
        drawn = draw_all(farm.prometheus, chosen, folder)
    assert {path.stem for path in drawn} == {f"dashboard-{name}" for name in dashboards()}
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000


def tasks_and_their_steps(receiver: Receiver) -> int:
    """Returns the number of task spans whose parent is the span of a step."""
    steps = {span.span_id: span for span in receiver.named("step")}
    return sum(
        task.parent_id in steps and task.trace_id == steps[task.parent_id].trace_id
        for task in receiver.named("task")
    )


def make_history(farm: WatchedFarm) -> Choice:
    """Makes a history: one job has ended, another one runs, and a worker was lost."""
    began = time.time()
    short = farm.client.submit(messages.SubmitJobRequest(spec_text=SMALL_SPEC, name="short"))
    endless = farm.client.submit(messages.SubmitJobRequest(spec_text=_ENDLESS, name="endless"))
    jobs = {short.id: short.name, endless.id: endless.name}
    wait_until(partial(holds, farm, endless.id, "sum(remy_farm_tasks_total) > 20"))
    lose_a_task(farm, endless.id)
    for condition in (
        f'count_over_time(remy_farm_job_epoch_gain{{job_id="{endless.id}"}}[1h]) > 7',
        f'remy_farm_job_state{{job_id="{short.id}",state="SUCCEEDED"}}',
        "rate(remy_farm_job_cpu_seconds_total[4s]) > 0",
        "farm:remy_farm_leases_lost:ratio_rate15m",
        "job_id:remy_farm_job_checkpoint_age:seconds",
        "operation:remy_farm_store_operation_duration_seconds:p99_5m",
    ):
        wait_until(partial(holds, farm, endless.id, condition))
    return Choice(jobs, began, time.time(), SCRAPE_SECONDS)


def lose_a_task(farm: WatchedFarm, job_id: str) -> None:
    """Kills workers until one of them had a task."""
    for number, worker in enumerate(farm.workers[1:], start=1):
        worker.kill()
        wait_until(
            partial(holds, farm, job_id, f"sum(remy_farm_worker_departures_total) >= {number}")
        )
        if holds(farm, job_id, 'remy_farm_leases_ended_total{reason="lost"}'):
            return


def holds(farm: WatchedFarm, job_id: str, expression: str) -> bool:
    """Whether an expression has a value; also makes a call, so that calls are counted."""
    farm.client.get(job_id)
    return bool(farm.prometheus.instant(expression, time.time()))


def rejected_queries(prometheus: Prometheus, chosen: Choice) -> list[str]:
    """Returns the queries that Prometheus rejects."""
    found = []
    for query in panel_queries():
        expression = chosen.expression(query.expression)
        try:
            prometheus.instant(expression, chosen.end)
            prometheus.range(expression, chosen.start, chosen.end, chosen.step_seconds)
        except QueryError as error:
            found.append(f"{query}: {expression}: {error}")
    return found


def panels_without_data(prometheus: Prometheus, chosen: Choice) -> list[str]:
    """Returns the panels without data that should have data."""
    by_panel: dict[str, list[PanelQuery]] = {}
    for query in panel_queries():
        by_panel.setdefault(str(query), []).append(query)
    return [
        name
        for name, queries in by_panel.items()
        if queries[0].panel not in _MAY_BE_EMPTY
        and not any(has_data(prometheus, query, chosen) for query in queries)
    ]


def has_data(prometheus: Prometheus, query: PanelQuery, chosen: Choice) -> bool:
    """Whether a panel's query returns data for all jobs together or for one of them."""
    return any(
        series.points
        for choice in (chosen, *map(chosen.only, chosen.jobs))
        for series in prometheus.range(
            choice.expression(query.expression), chosen.start, chosen.end, chosen.step_seconds
        )
    )


def variables_without_jobs(prometheus: Prometheus, chosen: Choice) -> list[str]:
    """Returns the dashboards whose variable does not list the farm's jobs."""
    found = []
    for name, tree in dashboards().items():
        for variable in tree["templating"]["list"]:
            if variable["name"] == "job":
                asked = variable["query"].removeprefix("query_result(").removesuffix(")")
                series = prometheus.instant(chosen.expression(asked), chosen.end)
                if {each.labels["job_id"] for each in series} != set(chosen.jobs):
                    found.append(name)
    return found


def failed_rules(prometheus: Prometheus) -> list[str]:
    """Returns the rules that Prometheus has not evaluated or could not evaluate."""
    groups = prometheus.get("rules")["groups"]
    loaded = {rule["name"]: rule for group in groups for rule in group["rules"]}
    names = {rule.get("alert") or rule["record"] for rule in rules()}
    assert names == set(loaded)
    return [f"{name}: {rule}" for name, rule in loaded.items() if rule["health"] != "ok"]


def series_of(prometheus: Prometheus) -> set[str]:
    names = prometheus.get("label/__name__/values")
    return {str(name) for name in names}
