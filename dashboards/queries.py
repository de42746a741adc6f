"""PromQL expressions shared by panels."""

from __future__ import annotations

from dashboards.parts import Query

#: Legend of a job's series.
JOB_LEGEND = "{{job_name}}"
#: Labels that identify a job, the id first.
JOB_LABELS = ("job_id", "job_name")
_BY_JOB = ", ".join(JOB_LABELS)

_FINAL = "SUCCEEDED|CANCELLED|FAILED"


def per_second(counter: str, by: str = "", window: str = "$__rate_interval") -> str:
    """The rate of a counter per second, summed over all labels except `by`."""
    return f"sum{_clause(by)}(rate({counter}[{window}]))"


def grown(counter: str, by: str = "", window: str = "$__rate_interval") -> str:
    """The increase of a counter over a window, summed over all labels except `by`."""
    return f"sum{_clause(by)}(increase({counter}[{window}]))"


def happened(counter: str, by: str = "", window: str = "$__rate_interval") -> str:
    """The number of events in a window, rounded because Prometheus extrapolates increases."""
    return f"round({grown(counter, by, window)})"


def by_job(gauge: str) -> str:
    """A gauge of a job, without the labels of the coordinator that reported it."""
    return f"max by ({_BY_JOB}) ({gauge})"


def age_of(timestamp: str) -> str:
    """Seconds since a Unix time, clamped at 0, since a scrape may be ahead of the query."""
    return f"clamp_min(time() - {timestamp}, 0)"


def unfinished(expression: str) -> str:
    """The expression, restricted to series of unfinished jobs."""
    return f'{expression} and on (job_id) remy_farm_job_state{{state!~"{_FINAL}"}}'


def quantiles(histogram: str) -> list[Query]:
    """Queries for the median, 90th and 99th percentile of a histogram."""
    buckets = per_second(f"{histogram}_bucket", "le")
    return [
        Query(f"histogram_quantile({share}, {buckets})", name)
        for share, name in ((0.5, "median"), (0.9, "90 %"), (0.99, "99 %"))
    ]


def tail(histogram: str, by: str) -> str:
    """The 99th percentile of a histogram for each value of a label."""
    return f"histogram_quantile(0.99, {per_second(f'{histogram}_bucket', f'le, {by}')})"


def _clause(by: str) -> str:
    return f" by ({by}) " if by else ""
