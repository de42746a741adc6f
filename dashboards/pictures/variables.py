"""What Grafana puts in the place of variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_VARIABLE = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")


@dataclass(frozen=True)
class Choice:
    """What a reader has chosen."""

    #: Names by id, of the jobs to show.
    jobs: Mapping[str, str]
    start: float
    end: float
    #: How often metrics are scraped.
    scrape_seconds: float

    @property
    def step_seconds(self) -> float:
        """Time between two points of a panel."""
        return max((self.end - self.start) / 150, self.scrape_seconds)

    def only(self, job_id: str) -> Choice:
        """The same with one job."""
        return Choice({job_id: self.jobs[job_id]}, self.start, self.end, self.scrape_seconds)

    def expression(self, text: str) -> str:
        """A query with its variables replaced. Raises KeyError for one that there is not."""
        values = {
            "__rate_interval": f"{int(max(4 * self.scrape_seconds, self.step_seconds))}s",
            "__range": f"{int(self.end - self.start)}s",
            "job": "|".join(self.jobs),
        }
        return _VARIABLE.sub(lambda found: values[found[1]], text)

    def title(self, text: str) -> str:
        """A title with its variables replaced."""
        return _VARIABLE.sub(lambda _: ", ".join(self.jobs.values()), text)
