"""Writes the report of a finished design into its directory."""

from __future__ import annotations

import json
from typing import Final

from remy_farm.analysis.history import collect_history
from remy_farm.analysis.report import Gain, ReportContent, measure_gain, write_report
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.progress import read_events
from remy_farm.driver.run import DesignResult
from remy_farm.evaluation.measures import Evaluate
from remy_farm.files import read_file
from remy_farm.remycc import file_suffixes
from remy_farm.specification import to_yaml

_PROVENANCE_BYTES: Final = 1 << 20


def report_design(out: OutDirectory, result: DesignResult, *, evaluate: Evaluate) -> Gain:
    """Compares a design's first and last table on fresh specimens, and writes the report.

    Raises FileError.
    """
    spec = result.spec
    gain = measure_gain(spec, result.first, [*result.tables.values()], evaluate=evaluate)
    content = ReportContent(
        name=spec.name,
        spec_yaml=to_yaml(spec),
        seed=spec.search.seed,
        versions=json.loads(read_file(out.provenance, limit=_PROVENANCE_BYTES))["versions"],
        history=collect_history(read_events(out.progress)),
        table=result.table,
        gain=gain,
        files=design_files(out, result),
    )
    write_report(out.path, content)
    return gain


def design_files(out: OutDirectory, result: DesignResult) -> list[str]:
    """Returns the names of the files that the design's directory has.

    Scale-free rules have no .dna file, and a design that was interrupted early has few files.
    """
    tables = [
        out.table_file(result.spec, name, suffix)
        for name, table in result.tables.items()
        for suffix in file_suffixes(table)
    ]
    run = (out.progress, out.pareto, out.spec, out.provenance, out.checkpoint)
    return [path.name for path in (*tables, *run) if path.exists()]
