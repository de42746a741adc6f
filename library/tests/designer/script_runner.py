"""Runs scripts of designer commands and prints their output.

A script is a text file of blocks: one command line, a line "----", the expected output, and an
empty line. Lines that start with "#" are comments. With REWRITE_SCRIPTS=1 in the environment the
tests replace the expected output by the actual one; read the difference before you commit it.

    design KEY=VALUE ...    starts a design of small_spec(...), or with search=joint of
                            small_joint_spec(...); a key with a dot is a stop rule
    noise X                 adds noise of this size to the score of every candidate
    request                 prints the outstanding request
    step [N]                makes N steps (default 1) and prints their events
    until EVENT             makes steps until this event occurs, and prints the last step's events
    run                     makes all remaining steps; prints splits and the ends of epochs and
    design stop REASON             stops the design resume [KEY=VALUE ...]  checkpoints and resumes
    the design, with other stop rules reconsider              applies the stop rules again table
    prints the published table regions                 prints the published table with the regions
    of its rules
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_proto.v1 import evaluation_pb2, progress_pb2, rule_table_pb2, spec_pb2
from remy_simulator.columns import specimen_count

_PURPOSE = progress_pb2.StepPurpose
_REASON = progress_pb2.StopReason


def replay(path: Path) -> str:
    """Runs a script. Returns it with the actual output in place of the expected one."""
    interpreter = _Interpreter()
    parts = []
    for comment, command in _blocks(path.read_text()):
        output = "\n".join(interpreter.execute(command)) or "ok"
        parts.append(f"{comment}{command}\n----\n{output}\n")
    return "\n".join(parts)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yields the comment lines and the command line of each block."""
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        comment = [line for line in lines if line.startswith("#")]
        command = next((line for line in lines if line and not line.startswith("#")), None)
        if command is None:
            raise ValueError(f"a block has no command: {block!r}")
        yield "".join(f"{line}\n" for line in comment), command


@dataclass
class _Interpreter:
    evaluator: AnalyticEvaluator
    designer: Designer
    options: dict[str, str]

    def __init__(self) -> None:
        self.evaluator = AnalyticEvaluator()
        self.options = {}

    def execute(self, command: str) -> list[str]:
        name, *arguments = command.split()
        return list(getattr(self, f"do_{name}")(*arguments))

    def do_design(self, *arguments: str) -> Iterator[str]:
        self.options = dict(argument.split("=") for argument in arguments)
        self.designer = Designer(_spec(self.options))
        return iter(())

    def do_noise(self, size: str) -> Iterator[str]:
        self.evaluator.noise = float(size)
        return iter(())

    def do_request(self) -> Iterator[str]:
        request = self.designer.next_request()
        if request is None:
            yield "none"
            return
        recording = evaluation_pb2.Recording.Name(request.recording)
        yield (
            f"{len(request.candidates)} candidates x {specimen_count(request)} specimens "
            f"x {request.duration_ms:.0f} ms, {recording}"
        )
        for number, candidate in enumerate(request.candidates):
            yield f"  {number}: {_change(candidate)}"

    def do_step(self, count: str = "1") -> Iterator[str]:
        for _ in range(int(count)):
            yield from self._step()

    def do_until(self, wanted: str) -> Iterator[str]:
        while True:
            events = self._receive()
            if any(event.WhichOneof("event") == wanted for event in events):
                return (_line(event) for event in events)

    def do_run(self) -> Iterator[str]:
        ends = ("rule_split", "epoch_finished", "design_finished")
        while self.designer.next_request() is not None:
            for event in self._receive():
                if event.WhichOneof("event") in ends:
                    yield _line(event)

    def do_stop(self, reason: str) -> Iterator[str]:
        return map(_line, self.designer.stop(getattr(progress_pb2, f"STOP_REASON_{reason}")))

    def do_resume(self, *arguments: str) -> Iterator[str]:
        self.options = {
            key: value for key, value in self.options.items() if not arguments or "." not in key
        } | dict(argument.split("=") for argument in arguments)
        data = self.designer.checkpoint()
        self.designer = Designer.resume(_spec(self.options), data)
        assert self.designer.checkpoint() == data
        return iter(())

    def do_reconsider(self) -> Iterator[str]:
        return map(_line, self.designer.reconsider())

    def do_table(self) -> Iterator[str]:
        table = self.designer.table
        for rule in range(table.rule_count):
            yield f"rule {rule}: {_numbers(table.action(rule))}"

    def do_regions(self) -> Iterator[str]:
        table = self.designer.table
        for rule in range(table.rule_count):
            lower, upper = table.region(rule)
            sides = [f"{lower[axis]:.6g}..{upper[axis]:.6g}" for axis in table.signals]
            yield f"rule {rule}: {' x '.join(sides)} -> {_numbers(table.action(rule))}"

    def _step(self) -> Iterator[str]:
        return map(_line, self._receive())

    def _receive(self) -> list[progress_pb2.ProgressEvent]:
        request = self.designer.next_request()
        assert request is not None, "the design is finished"
        return self.designer.receive(self.evaluator.evaluate(request))


def _spec(options: dict[str, str]) -> spec_pb2.DesignSpec:
    keywords: dict[str, Any] = {}
    stop: dict[str, Any] = {}
    for key, value in options.items():
        if key.startswith("stop."):
            stop[key.removeprefix("stop.")] = int(value)
        elif key == "signals":
            keywords[key] = value
        elif key != "search":
            keywords[key] = float(value) if "." in value else int(value)
    if options.get("search") == "joint":
        return small_joint_spec(stop=stop, **keywords)
    return small_spec(**keywords, **stop)


def _change(candidate: evaluation_pb2.Candidate) -> str:
    if candidate.HasField("perturbation"):
        return f"all rules perturbed by {candidate.perturbation.scale:g}"
    changes = candidate.actions.changes
    text = ", ".join(f"rule {change.rule}: {_action(change.action)}" for change in changes)
    return text or "unchanged"


def _line(event: progress_pb2.ProgressEvent) -> str:
    kind = event.WhichOneof("event")
    assert kind is not None
    return f"{event.sequence}. step {event.step} epoch {event.epoch}: {_TEXTS[kind](event)}"


def _step_finished(event: progress_pb2.ProgressEvent) -> str:
    step = event.step_finished
    purpose = _PURPOSE.Name(step.purpose).removeprefix("STEP_PURPOSE_")
    gain = f", gain {_estimate(step.gain)}" if step.HasField("gain") else ""
    return (
        f"{purpose} with {step.rules} rules, {step.candidates} candidates x {step.specimens}: "
        f"score {_estimate(step.score)}{gain}"
    )


def _rule_chosen(event: progress_pb2.ProgressEvent) -> str:
    chosen = event.rule_chosen
    return f"rule {chosen.rule} chosen, used {chosen.uses} of {chosen.uses_of_all_rules} times"


def _rule_improved(event: progress_pb2.ProgressEvent) -> str:
    improved = event.rule_improved
    return (
        f"rule {improved.rule} improved: {_action(improved.before)} -> {_action(improved.after)}, "
        f"gain {_estimate(improved.gain)}"
    )


def _rule_split(event: progress_pb2.ProgressEvent) -> str:
    split = event.rule_split
    places = ", ".join(
        f"{rule_table_pb2.Signal.Name(threshold.signal).removeprefix('SIGNAL_').lower()} "
        f"{threshold.value:.6g}"
        for threshold in split.thresholds
    )
    return f"rule {split.rule} split at {places}; {split.rules} rules"


def _epoch_finished(event: progress_pb2.ProgressEvent) -> str:
    record = event.epoch_finished.record
    return (
        f"epoch {record.epoch} finished: {record.rules_changed} of {record.rules} rules changed, "
        f"{record.evaluations} evaluations, {_comparison(record.comparison)}"
    )


def _design_finished(event: progress_pb2.ProgressEvent) -> str:
    finished = event.design_finished
    reason = _REASON.Name(finished.reason).removeprefix("STOP_REASON_")
    closing = f", closing {_comparison(finished.closing)}" if finished.HasField("closing") else ""
    return f"finished: {reason}, {finished.epochs} epochs, {finished.rules} rules{closing}"


_TEXTS = {
    "step_finished": _step_finished,
    "rule_chosen": _rule_chosen,
    "rule_improved": _rule_improved,
    "rule_split": _rule_split,
    "epoch_finished": _epoch_finished,
    "design_finished": _design_finished,
}


def _comparison(comparison: progress_pb2.Comparison) -> str:
    verdict = "accepted" if comparison.accepted else "not accepted"
    return (
        f"{_estimate(comparison.before)} -> {_estimate(comparison.after)}, "
        f"gain {_estimate(comparison.gain)} on {comparison.gain.specimens}, {verdict}"
    )


def _estimate(estimate: progress_pb2.Estimate) -> str:
    return f"{estimate.mean:.4f} +- {estimate.standard_error:.4f}"


def _action(action: rule_table_pb2.Action) -> str:
    return _numbers((action.window_multiple, action.window_increment, action.intersend_ms))


def _numbers(action: tuple[float, float, float]) -> str:
    return "m {:g} b {:g} r {:g}".format(*action)
