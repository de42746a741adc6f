"""Draws the dashboards from the data of a Prometheus server, without Grafana."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from dashboards.__main__ import GENERATED
from dashboards.pictures.picture import picture
from dashboards.pictures.prometheus import Prometheus
from dashboards.pictures.variables import Choice


def jobs_of(prometheus: Prometheus, start: float, end: float) -> dict[str, str]:
    """Names by id of the jobs that were there, by name."""
    expression = f"last_over_time(remy_farm_job_info[{int(end - start)}s])"
    found = {
        series.labels["job_id"]: series.labels["job_name"]
        for series in prometheus.instant(expression, end)
    }
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def draw_all(prometheus: Prometheus, choice: Choice, folder: Path) -> list[Path]:
    """Writes dashboard-NAME.png for each; the dashboard of one job shows the first."""
    paths = []
    for source in sorted(GENERATED.glob("*.json")):
        dashboard = json.loads(source.read_text(encoding="utf-8"))
        variables = {each["name"]: each for each in dashboard["templating"]["list"]}
        is_of_one = "job" in variables and not variables["job"]["multi"]
        chosen = choice.only(next(iter(choice.jobs))) if is_of_one else choice
        path = folder / f"dashboard-{source.stem}.png"
        path.write_bytes(picture(dashboard, prometheus, chosen))
        paths.append(path)
    return paths


def main() -> None:
    """Takes flags, as `--help` says."""
    parser = argparse.ArgumentParser(prog="python -m dashboards.pictures", description=__doc__)
    parser.add_argument("--prometheus", required=True, metavar="URL", help="as in http://HOST:9090")
    parser.add_argument(
        "--seconds", type=float, default=21600.0, help="up to now; default: 6 hours"
    )
    parser.add_argument(
        "--scrape-seconds", type=float, default=15.0, help="time between two scrapes; default: 15"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/images"), metavar="DIR")
    flags = parser.parse_args()
    prometheus, end = Prometheus(flags.prometheus), time.time()
    start = end - flags.seconds
    jobs = jobs_of(prometheus, start, end)
    if not jobs:
        raise SystemExit(f"{flags.prometheus} knows no jobs of the last {flags.seconds:g} s.")
    for path in draw_all(prometheus, Choice(jobs, start, end, flags.scrape_seconds), flags.out):
        print(path)


if __name__ == "__main__":
    main()
