"""PromQL that many panels are made of."""

from __future__ import annotations

from dashboards.parts import Query

#: What a job's series are called.
JOB_LEGEND = "{{job_name}}"
#: Labels that tell jobs apart, the id first.
JOB_LABELS = ("job_id", "job_name")
_BY_JOB = ", ".join(JOB_LABELS)

_FINAL = "SUCCEEDED|CANCELLED|FAILED"


def per_second(counter: str, by: str = "", window: str = "$__rate_interval") -> str:
    """How fast a counter grows, summed over all labels but `by`."""
    return f"sum{_clause(by)}(rate({counter}[{window}]))"


def grown(counter: str, by: str = "", window: str = "$__rate_interval") -> str:
    """By how much a counter grew, summed over all labels but `by`."""
    return f"sum{_clause(by)}(increase({counter}[{window}]))"


def happened(counter: str, by: str = "", window: str = "$__rate_interval") -> str:
    """How often something happened: in whole numbers, which an extrapolation need not be."""
    return f"round({grown(counter, by, window)})"


def by_job(gauge: str) -> str:
    """A job's metric, without what tells coordinators apart."""
    return f"max by ({_BY_JOB}) ({gauge})"


def age_of(timestamp: str) -> str:
    """Seconds since a Unix time; not less than 0, though a scrape takes a moment to be answered."""
    return f"clamp_min(time() - {timestamp}, 0)"


def unfinished(expression: str) -> str:
    """Those of an expression's series that are of jobs which are not finished."""
    return f'{expression} and on (job_id) remy_farm_job_state{{state!~"{_FINAL}"}}'


def quantiles(histogram: str) -> list[Query]:
    """The median and the tail of a histogram."""
    buckets = per_second(f"{histogram}_bucket", "le")
    return [
        Query(f"histogram_quantile({share}, {buckets})", name)
        for share, name in ((0.5, "median"), (0.9, "90 %"), (0.99, "99 %"))
    ]


def tail(histogram: str, by: str) -> str:
    """The 99th percentile of a histogram, by one of its labels."""
    return f"histogram_quantile(0.99, {per_second(f'{histogram}_bucket', f'le, {by}')})"


def _clause(by: str) -> str:
    return f" by ({by}) " if by else ""
