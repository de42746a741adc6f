"""Records the exit code of every command, and the keys of its `--json` output."""

from __future__ import annotations

import json
import re
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

from tests.pinned.command_line import (
    call,
    call_json,
    coordinator,
    exported_metrics,
    run,
    started,
)
from tests.pinned.records import Record
from tests.pinned.results import SPECIFICATIONS, write_table
from tests.waiting import wait_until

_NETWORK: Final = "--senders 2 --rate-mbps 12 --rtt-ms 100 --on-ms 500 --off-ms 500 --seconds 10"
_SIMULATE: Final = f"simulate --remycc eight.dna {_NETWORK}"
_EVALUATE: Final = "evaluate --remycc eight.dna --spec paper.yaml --specimens 4"
_BENCHMARK: Final = "benchmark-search --specimens 4 --threads 2"
_SHORT: Final = (
    "--set search.simulated_seconds=1 --set search.joint.steps_per_epoch=1 "
    "--set search.joint.validation_specimens=4"
)

#: Commands that need only files. They run in this order in the folder that `_write_files` fills.
_ALONE: Final = (
    _SIMULATE,
    (
        f"{_SIMULATE} --remycc one.dna --buffer-packets 30 --loss-probability 0.01 "
        "--set measurement.jitter.exponential_mean_ms=3 --seed 4"
    ),
    _EVALUATE,
    "inspect eight.dna",
    "inspect eight.dna --spec paper.yaml --specimens 8 --signals",
    "inspect eight.dna --spec paper.yaml --specimens 8 --merge",
    "inspect eight.dna --spec paper.yaml --specimens 8 --merge-out merged.json",
    "inspect eight.dna --diff merged.json --spec paper.yaml --specimens 8",
    "design paper.yaml --out stopped --max-steps 4",
    "design paper.yaml --out stopped --resume",
    "design paper.yaml --out stopped --resume --seed 2",
    "design paper.yaml --out stopped",
    "design joint.yaml --out swept --sweep objective.delta=0.1,1",
    f"{_BENCHMARK} --remycc eight.dna --remycc one.dna --delta 10",
    f"{_BENCHMARK} --seeds 1-2 --steps 2 --out searched {_SHORT}",
)
#: Commands that need only files and run without --json; many of them must fail.
_ALONE_WITHOUT_JSON: Final = (
    "convert eight.dna eight.json",
    "convert eight.json again.dna",
    "convert half.json half.dna",
    "convert eight.dna eight.txt",
    "convert eight.dna no/eight.json",
    "convert nowhere.dna eight.json",
    "convert truncated.dna eight.json",
    "validate joint.yaml",
    "validate wrong.yaml",
    "validate broken.yaml",
    "validate nowhere.yaml",
    "validate joint.yaml --json",
    "frobnicate",
    "validate joint.yaml --colour",
    "validate",
    f"{_SIMULATE} --senders 0",
    f"{_SIMULATE} --senders many",
    f"{_SIMULATE} --rtt-ms nan",
    f"{_SIMULATE} --loss-probability 1",
    f"{_SIMULATE} --seed -1",
    f"simulate --remycc truncated.dna {_NETWORK}",
    "simulate --remycc eight.dna",
    f"{_EVALUATE} --specimens 0",
    f"{_EVALUATE} --remycc .",
    f"{_EVALUATE} --spec nowhere.yaml",
    f"{_EVALUATE} --threads 0",
    "inspect empty.json",
    "inspect truncated.dna",
    "inspect eight.dna --signals",
    "inspect eight.dna --merge-out merged.txt --spec paper.yaml",
    "design nowhere.yaml --out out",
    "design wrong.yaml --out out",
    "design paper.yaml --out eight.dna",
    "design paper.yaml --out eight.dna/out",
    "design paper.yaml --out out --max-steps 0",
    "design paper.yaml --out out --steps 9",
    "design paper.yaml --out out --from truncated.dna",
    "design paper.yaml --out out --from eight.dna",
    "design paper.yaml --out out --sweep objective.delta=",
    "design paper.yaml --out out --sweep objective.colour=1,2",
    "design joint.yaml --out out --resume --from eight.dna",
    "benchmark-search",
    f"{_BENCHMARK} --seeds 1-2",
    f"{_BENCHMARK} --seeds 2-1 --out out",
    f"{_BENCHMARK} --remycc truncated.dna",
    f"{_BENCHMARK} --seeds 1 --out out --set objective.colour=1",
    "completion tcsh",
)
#: Commands of servers, run as processes, which must refuse their arguments.
_SERVERS: Final = (
    "coordinator --listen nowhere",
    "coordinator --listen 0.0.0.0:0",
    "coordinator --listen 127.0.0.1:0 --store ftp://nowhere",
    "coordinator --config nowhere.yaml",
    "coordinator --config wrong.yaml",
    "coordinator --listen 127.0.0.1:0 --tls-cert eight.dna",
    "coordinator --listen 127.0.0.1:0 --tokens-file wrong.yaml --store sqlite:unused.db",
    "coordinator --listen 127.0.0.1:0 --evaluator threads",
    "worker",
    "worker --coordinator nowhere",
    "worker --coordinator farm.example.org:50051 --threads 0",
    "worker --coordinator 127.0.0.1:50051 --token-file nowhere",
    "worker --coordinator 127.0.0.1:50051 --tls-ca nowhere",
)


def _write_files(folder: Path) -> None:
    write_table(folder / "eight.dna")
    for name in ("paper", "joint"):
        (folder / f"{name}.yaml").write_text(SPECIFICATIONS[name], encoding="utf-8")
    text = SPECIFICATIONS["paper"]
    (folder / "endless.yaml").write_text(text.replace("epochs: 3", "epochs: 1000000"))
    (folder / "wrong.yaml").write_text(
        text.replace("rtt_ms: {uniform: [20, 60]}", "rtt_ms: -5").replace(
            "mode: paper", "mode: cardboard"
        )
        + "colour: red\n"
    )
    (folder / "broken.yaml").write_text("name: [unclosed\nnetwork: {")
    (folder / "truncated.dna").write_bytes(b"\x0a\x7f\x00")
    (folder / "empty.json").write_bytes(b"")
    with chdir(folder):
        assert call("convert", "eight.dna", "half.json").exit_code == 0
    half = folder / "half.json"
    half.write_text(re.sub(r'("window_increment": )1(\.0)?\b', r"\g<1>1.5", half.read_text()))
    call_json("design", folder / "paper.yaml", "--out", folder / "one", "--max-steps", "1")
    (folder / "one.dna").write_bytes((folder / "one" / "remycc.dna").read_bytes())


def _key_paths(value: Any, path: str = "") -> set[str]:
    """Returns the paths of all keys of a JSON value.

    A list's elements have the path `[]`. A specification counts as one key.
    """
    if isinstance(value, dict):
        paths = {f"{path}.{key}".lstrip(".") for key in value}
        children = [(f"{path}.{key}", each) for key, each in value.items() if key != "spec"]
    elif isinstance(value, list):
        paths, children = set(), [(f"{path}[]", each) for each in value]
    else:
        return set()
    return paths.union(*(_key_paths(each, inner) for inner, each in children))


def _outcome(command: str, **settings: str) -> str:
    """Calls a command and returns its exit code and the keys of the JSON object that it printed."""
    result = call(*command.split(), **settings)
    if result.exit_code != 0:
        assert result.output, f"{command} failed and printed nothing"
    is_json = "--json" in command.split() and result.exit_code == 0
    return _format_outcome(result.exit_code, result.stdout if is_json else "")


def _format_outcome(code: int, printed: str) -> str:
    keys = sorted(_key_paths(json.loads(printed))) if printed else []
    return " ".join([str(code), *keys])


def _alone(folder: Path) -> Any:
    _write_files(folder)
    with chdir(folder):
        outcomes = {f"{command} --json": _outcome(f"{command} --json") for command in _ALONE}
        outcomes |= {command: _outcome(command) for command in _ALONE_WITHOUT_JSON}
        for command in _SERVERS:
            done = run(*command.split())
            assert done.stderr.splitlines(), command
            outcomes[command] = _format_outcome(done.returncode, "")
    return outcomes


class Farm:
    """Calls commands on one coordinator and collects their outcomes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._ids: dict[str, str] = {}
        #: Outcomes by command.
        self.outcomes: dict[str, Any] = {}

    def record_job(self, command: str, name: str) -> None:
        """Calls a command that makes a job; later commands write `(name)` for the job's ID."""
        printed = self.call(command)
        self._ids[f"({name})"] = printed["id"]
        self._add(f"{command} --json", _format_outcome(0, json.dumps(printed)))

    def record(self, command: str) -> None:
        """Calls a command with --json and records its outcome."""
        self.record_without_json(f"{command} --json")

    def record_without_json(self, command: str) -> None:
        """Calls a command as given and records its outcome."""
        self._add(command, _outcome(self._with_ids(command), **self._settings))

    def wait(self, job: str, state: str) -> None:
        """Waits until the job is in this state."""
        wait_until(lambda: self.call(f"status {job}")["state"] == state)

    def call(self, command: str) -> dict[str, Any]:
        """Calls a command without recording its outcome; returns its JSON output."""
        return call_json(*self._with_ids(command).split(), **self._settings)

    @property
    def _settings(self) -> dict[str, str]:
        return {"REMY_FARM_COORDINATOR": self.address}

    def _with_ids(self, command: str) -> str:
        for name, job in self._ids.items():
            command = command.replace(name, job)
        return command

    def _add(self, command: str, outcome: str) -> None:
        calls = sum(each == command or each.startswith(f"{command} #") for each in self.outcomes)
        self.outcomes[f"{command} #{calls + 1}" if calls else command] = outcome


def _service(folder: Path) -> Any:
    _write_files(folder)
    (folder / "store").mkdir()
    flags = ("--name", "pinned", "--maximum-running-jobs", "1", "--checkpoint-seconds", "0")
    metrics = ("--metrics-listen", "127.0.0.1:0")
    with chdir(folder), coordinator(folder / "store", *flags, *metrics) as address:
        farm = Farm(address)
        _life_of_a_job(farm)
        _refusals(farm)
        _waiting_jobs(farm)
        columns = Path("steps.csv").read_text(encoding="utf-8").splitlines()[0]
        farm.outcomes["columns of history --steps"] = columns
        farm.outcomes["metrics of a coordinator"] = exported_metrics(Path("store", "log"))
    command = ("worker", "--coordinator", "127.0.0.1:1", "--threads", "1", *metrics)
    with started(folder / "worker.log", *command):
        farm.outcomes["metrics of a worker"] = exported_metrics(folder / "worker.log")
    return farm.outcomes


def _life_of_a_job(farm: Farm) -> None:
    farm.record("list")
    farm.record("info")
    farm.record("doctor")
    farm.record("submit paper.yaml --validate-only")
    farm.record_job("submit paper.yaml --name first --watch --quiet", "id-of-first")
    farm.record("status first")
    farm.record("status (id-of-first)")
    farm.record("watch first --quiet")
    farm.record("list --state succeeded --name fir --owner local")
    farm.record("list --state failed")
    farm.record("fetch first -o fetched.json")
    farm.record("fetch first -o fetched.dna")
    farm.record("fetch first --epoch 0 -o first.json")
    farm.record("history first")
    farm.record("history first --steps")
    farm.record_without_json("history first --steps -o steps.csv")
    farm.record_without_json("history first -o epochs.json")
    farm.record("extend first --max-epochs 4")
    farm.wait("first", "succeeded")
    farm.record("status first")
    farm.record_job("fork first --epoch 0 --set objective.delta=3 --name forked", "id-of-forked")
    farm.wait("forked", "succeeded")
    farm.record("status forked")
    farm.record("compare first forked")
    farm.call("export-job first -o first.archive")
    farm.record("delete first --yes")
    farm.record("import-job first.archive")
    farm.record("status first")
    farm.record("watch (id-of-first) --quiet")


def _refusals(farm: Farm) -> None:
    for command in (
        "status nothing",
        "watch nothing",
        "watch",
        "pause first",
        "resume first",
        "cancel first",
        "cancel nothing",
        "extend first",
        "extend first --max-rules 0",
        "extend first --steps 5",
        "fork first --set objective.delta=-1",
        "fork first --set objective.colour=1",
        "fork first --epoch 900",
        "fetch first -o first.txt",
        "fetch first -o no/first.json",
        "fetch first --epoch 900 -o first.json",
        "fetch nothing -o first.json",
        "history nothing",
        "history first -o first.txt",
        "delete nothing --yes",
        "delete first",
        "compare first",
        "compare first nothing",
        "export-job nothing -o nothing.archive",
        "export-job first -o no/first.archive",
        "import-job first.archive",
        "import-job truncated.dna",
        "import-job nowhere.archive",
        "submit wrong.yaml",
        "submit nowhere.yaml",
        "submit paper.yaml --name ../first",
        "submit paper.yaml --weight 0",
        "submit paper.yaml --sweep objective.delta=-1,1",
        "list --state asleep",
        "list --limit 0",
        "watch --campaign nothing",
        "list --coordinator nowhere:port",
        "list --token-file nowhere",
        "list --tls-ca nowhere",
        "list --insecure --tls-ca eight.dna",
        "list --tls-cert eight.dna",
        *(
            f"{unreachable} --coordinator 127.0.0.1:1 --patience 0"
            for unreachable in ("list", "info", "status first", "submit paper.yaml")
        ),
        "doctor --coordinator 127.0.0.1:1 --json",
    ):
        farm.record_without_json(command)
    done = run("worker", "--coordinator", farm.address, "--threads", "1")
    farm.outcomes["worker --coordinator (without workers)"] = _format_outcome(done.returncode, "")


def _waiting_jobs(farm: Farm) -> None:
    """Records commands on a queued job; an endless job before it makes that independent of time."""
    farm.call("submit endless.yaml --name endless")
    farm.wait("endless", "running")
    farm.record_job("submit joint.yaml --name second --priority -3 --weight 2.5", "id-of-second")
    farm.record("status second")
    farm.record("delete second --yes")
    farm.record("resume second")
    farm.record("pause second")
    farm.record("pause second")
    farm.record("list --name second")
    farm.record("resume second")
    farm.record("extend second --max-steps 5 --max-cpu-seconds 3.5 --steps 7")
    farm.record("cancel second")
    farm.record("watch second --quiet")
    farm.record("fetch second -o second.json")
    farm.call("cancel endless")
    farm.wait("endless", "cancelled")
    farm.record("submit joint.yaml --sweep objective.delta=0.5,2 --watch --quiet")


RECORDS: Final = (Record("commands", _alone), Record("service-commands", _service))
