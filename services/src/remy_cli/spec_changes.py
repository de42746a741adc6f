"""Options that change a specification before a design."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from remy_cli.common import (
    COUNT,
    FILE,
    POSITIVE,
    SEED,
    FiniteRange,
    option,
    settings_option,
    sweeps_option,
)
from remy_farm.analysis import Member, members_of, parse_sweep
from remy_farm.designer import with_steps
from remy_farm.driver import with_budget
from remy_farm.specification import (
    MODES,
    Tree,
    check_spec,
    load_tree,
    parse_setting,
    spec_from_tree,
    vary,
)
from remy_proto.v1 import spec_pb2

#: A fraction strictly between 0 and 1.
FRACTION = FiniteRange(min=0, min_open=True, max=1, max_open=True)

_OPTIONS = (
    option("--seed K", "Seed of the design; overrides the specification's.", SEED),
    option(
        "--steps N",
        "Total number of steps; overrides search.joint.steps or its CPU budget, or "
        "search.pattern.steps.",
        COUNT,
    ),
    option("--max-steps N", "Stop the design after N steps in total.", COUNT),
    option(
        "--max-cpu-seconds S",
        "Stop the design after S seconds of CPU time for its simulations. Use "
        "search.joint.cpu_seconds instead to plan the search for a CPU time.",
        POSITIVE,
    ),
    settings_option(
        "Override a setting of the specification, e.g. objective.delta=0.1; may be given several "
        "times."
    ),
    sweeps_option("Run a design"),
    option(
        "--harden FILE.yaml", "Also design for the networks in this file, which attack wrote.", FILE
    ),
    option(
        "--harden-share S",
        "Fraction of each step's networks taken from --harden.",
        FRACTION,
        default=0.125,
    ),
)


@dataclass(frozen=True)
class SpecChanges:
    """Values of the options that change a specification."""

    seed: int | None
    steps: int | None
    max_steps: int | None
    max_cpu_seconds: float | None
    settings: tuple[str, ...]
    sweeps: tuple[str, ...]
    harden: str | None
    harden_share: float

    def spec(self, path: str, *, edition: int) -> spec_pb2.DesignSpec:
        """Reads a specification and applies the changes. Raises SpecError or FileError."""
        folder = Path(path).parent
        return self._adjusted(spec_from_tree(self._tree(path), path, edition=edition, files=folder))

    def members(self, path: str) -> list[Member]:
        """Returns a changed specification for each combination of the sweeps' values.

        Raises SpecError or FileError.
        """
        sweeps = [parse_sweep(text) for text in self.sweeps]
        settings = {setting for setting, _ in self._settings(path)}
        for sweep in sweeps:
            if sweep.path in settings:
                raise click.UsageError(f"--set and a sweep of {sweep.path} exclude each other")
        tree = self._tree(path)
        self._check_conflicts([sweep.path for sweep in sweeps], "a sweep")
        members = members_of(tree, sweeps, source=path, folder=Path(path).parent)
        return [dataclasses.replace(member, spec=self._adjusted(member.spec)) for member in members]

    def _tree(self, path: str) -> Tree:
        tree = load_tree(path)
        settings = [*self._settings(path)]
        self._check_conflicts([setting for setting, _ in settings], "--set")
        for setting, value in settings:
            tree = vary(tree, setting, value, source=path)
        if self.harden is None:
            return tree
        from remy_laboratory.studies import add_attack_networks

        return add_attack_networks(tree, Path(self.harden), self.harden_share)

    def _settings(self, path: str) -> Iterator[tuple[str, Tree]]:
        for text in self.settings:
            yield parse_setting(text, "--set", source=path)

    def _check_conflicts(self, paths: list[str], what: str) -> None:
        options = {
            f"search.{mode.name}.{length}": self.steps for mode in MODES for length in mode.lengths
        }
        options["search.seed"] = self.seed
        for path in paths:
            if options.get(path) is not None:
                flag = "--seed" if path == "search.seed" else "--steps"
                raise click.UsageError(f"{flag} and {what} of {path} exclude each other")

    def _adjusted(self, spec: spec_pb2.DesignSpec) -> spec_pb2.DesignSpec:
        if self.seed is not None:
            spec.search.seed = self.seed
        if self.steps is not None:
            spec = with_steps(spec, self.steps)
            check_spec(spec, source="--steps")
        return with_budget(spec, max_steps=self.max_steps, max_cpu_seconds=self.max_cpu_seconds)


def pass_spec_changes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds these options to a command and passes their values as `changes`."""

    @functools.wraps(function)
    def run(**values: Any) -> Any:
        fields = {field.name: values.pop(field.name) for field in dataclasses.fields(SpecChanges)}
        return function(changes=SpecChanges(**fields), **values)

    for add in reversed(_OPTIONS):
        run = add(run)
    return run
