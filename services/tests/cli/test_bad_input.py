"""Tests that a user's mistake gives one sentence and exit code 2, and writes no file."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SIMULATE = (
    "simulate --remycc {remycc} --senders 2 --rate-mbps 12 --rtt-ms 100 --on-ms 1000 --off-ms 1000 "
    "--seconds 1 --seed 1"
)
EVALUATE = "evaluate --remycc {remycc} --spec {spec} --specimens 2 --seed 1"

CASES = {
    "no such command": ("frobnicate", "frobnicate"),
    "no such option": ("validate {spec} --colour", "--colour"),
    "missing option": ("simulate --remycc {remycc} --senders 1", "--seconds"),
    "a RemyCC without senders": (SIMULATE.replace("--senders 2 ", ""), "--senders"),
    "senders without a RemyCC": (SIMULATE.replace("--remycc {remycc} ", ""), "--remycc"),
    "no sender": (
        SIMULATE.replace("--remycc {remycc} --senders 2 ", ""),
        "--sender WHAT",
    ),
    "no length of on periods": (
        SIMULATE.replace("--on-ms 1000 ", ""),
        "traffic must have one of the keys",
    ),
    "no such protocol": (SIMULATE + " --sender cubik=2", 'no protocol "cubik"'),
    "no such variant": (SIMULATE + " --sender bbr,variant=v9", "v1, v3"),
    "no such parameter": (SIMULATE + " --sender cubic,gamma=1=2", "beta"),
    "parameter out of range": (SIMULATE + " --sender cubic,beta=7", "0.1 to 0.99, not 7"),
    "parameter that is not a number": (SIMULATE + " --sender cubic,beta=x", "'x'"),
    "parameter twice": (SIMULATE + " --sender cubic,beta=0.5,beta=0.6", "twice"),
    "too many senders": (SIMULATE + " --sender cubic=10001", "1 to 10000"),
    "negative number of senders": (SIMULATE + " --sender cubic=-1", "asks for -1 senders"),
    "a RemyCC without a file": (SIMULATE + " --sender remycc:=1", "remycc:FILE"),
    "a protocol on datagrams": (
        SIMULATE + " --sender cubic,transport=datagram",
        "protocols need tcp",
    ),
    "an unknown transport": (SIMULATE + " --transport udp", "datagram"),
    "a transport that no sender can use": (
        SIMULATE.replace("--remycc {remycc} --senders 2", "--sender cubic --transport datagram"),
        "--transport datagram runs RemyCCs only",
    ),
    "another transport that no sender can use": (
        EVALUATE.replace("--remycc {remycc}", "--sender cubic --transport ns2"),
        "--transport ns2 runs RemyCCs only",
    ),
    "an RTT of the scored sender": (
        EVALUATE.replace("--remycc {remycc}", "--sender cubic,rtt_ms=50"),
        "has an RTT, which the specification sets",
    ),
    "zero RTT": (SIMULATE + " --sender cubic,rtt_ms=0", "above 0"),
    "start times without senders": (
        "simulate --set senders=[cubic] --rate-mbps 3 --rtt-ms 3 --seconds 1 --starts-apart-ms 9",
        "--starts-apart-ms needs senders",
    ),
    "a network that is not YAML": (SIMULATE + " --network {folder}/broken.yaml", "is not YAML"),
    "no rate": (SIMULATE.replace("--rate-mbps 12 ", ""), "rate_mbps is missing"),
    "no such queue": (SIMULATE + " --queue fifo", "drop-tail"),
    "XCP without its router": (SIMULATE + " --sender xcp", "XCP router"),
    "omniscient with other senders": (
        SIMULATE + " --sender omniscient",
        "cannot share its link with other senders",
    ),
    "unknown format of a recording": (SIMULATE + " --record {folder}/run.txt", ".csv"),
    "unknown format of a plot": (SIMULATE + " --plot {folder}/run.pdf", ".png"),
    "nothing to score": (EVALUATE.replace("--remycc {remycc} ", ""), "--sender WHAT"),
    "two arguments to score": (EVALUATE + " --sender cubic", "--sender WHAT"),
    "a number of the scored sender": (
        EVALUATE.replace("--remycc {remycc}", "--sender cubic=2"),
        "has a number of senders, which the specification sets",
    ),
    "missing argument": ("validate", "SPEC.yaml"),
    "not a number": (SIMULATE + " --senders many", "--senders"),
    "no senders": (SIMULATE + " --senders 0", "--senders"),
    "negative link rate": (SIMULATE + " --rate-mbps -3", "--rate-mbps"),
    "NaN": (SIMULATE + " --rtt-ms nan", "--rtt-ms"),
    "infinite": (SIMULATE + " --seconds inf", "--seconds"),
    "certain loss": (SIMULATE + " --loss-probability 1", "--loss-probability"),
    "negative jitter": (
        SIMULATE + " --set measurement.jitter.exponential_mean_ms=-1",
        "measurement.jitter.exponential_mean_ms is -1",
    ),
    "percentile without a median": (
        SIMULATE + " --set measurement.jitter.log_normal.percentile_99_ms=3",
        "measurement.jitter.log_normal.median_ms is missing",
    ),
    "percentile below the median": (
        SIMULATE
        + " --set measurement.jitter.log_normal.median_ms=2"
        + " --set measurement.jitter.log_normal.percentile_99_ms=1",
        "measurement.jitter.log_normal",
    ),
    "zero bunch size": (SIMULATE + " --set measurement.bunch_packets=0", "bunch_packets is 0"),
    "unknown clocks": (SIMULATE + " --set measurement=ideal", "measurement is 'ideal'"),
    "distribution of bunch sizes": (
        SIMULATE + " --set measurement=realistic",
        "measurement.bunch_packets has a distribution",
    ),
    "infinite resolution": (
        SIMULATE + " --set measurement.timestamp_resolution_ms=.inf",
        "measurement.timestamp_resolution_ms is inf",
    ),
    "unknown key": (SIMULATE + " --set rat_mbps=3", "did you mean rate_mbps?"),
    "a removed flag": (
        SIMULATE + " --jitter-ms 1",
        "--jitter-ms is replaced by --set measurement.jitter.exponential_mean_ms=X",
    ),
    "negative buffer": (SIMULATE + " --buffer-packets -1", "--buffer-packets"),
    "negative seed": (SIMULATE + " --seed -1", "--seed"),
    "seed of 65 bits": (SIMULATE + " --seed 18446744073709551616", "--seed"),
    "no specimens": (EVALUATE + " --specimens 0", "--specimens"),
    "no threads": (EVALUATE + " --threads 0", "--threads"),
    "no such RemyCC": ("inspect {folder}/nowhere.dna", "nowhere.dna"),
    "a directory instead of a RemyCC": ("inspect {folder}", "{folder}"),
    "truncated .dna": ("inspect {folder}/truncated.dna", "truncated.dna"),
    "empty .json": ("inspect {folder}/empty.json", "empty.json"),
    "NaN in .json": ("inspect {folder}/nan.json", "nan.json"),
    "deep .json": ("inspect {folder}/deep.json", "deep.json"),
    "unknown target format": ("convert {remycc} {folder}/out.txt", "out.txt"),
    "target in a missing directory": ("convert {remycc} {folder}/no/out.dna", "no/out.dna"),
    "one of several tables": (
        EVALUATE + f" --spec {Path(__file__).parents[3] / 'examples' / 'diversity.yaml'}",
        "2 tables together",
    ),
    "no such specification": (EVALUATE + " --spec {folder}/nowhere.yaml", "nowhere.yaml"),
    "not YAML": ("validate {folder}/broken.yaml", "broken.yaml"),
    "unknown field": ("validate {folder}/unknown.yaml", "colour"),
    "binary specification": ("validate {folder}/binary.yaml", "binary.yaml"),
    "output directory is a file": ("design {spec} --out {remycc}", "{remycc}"),
    "output directory below a file": ("design {spec} --out {remycc}/out", "{remycc}"),
    "no budget": ("design {spec} --out {folder}/out --max-steps 0", "--max-steps"),
    "no steps": ("design {spec} --out {folder}/out --steps 0", "--steps"),
    "steps of a paper search": ("design {spec} --out {folder}/out --steps 9", "--max-steps"),
    "design of a broken specification": (
        "design {folder}/broken.yaml --out {folder}/out",
        "broken",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, spec_file: Path, remycc_file: Path) -> Path:
    """A directory with a valid specification, a valid RemyCC, and invalid files."""
    (tmp_path / "truncated.dna").write_bytes(b"\x0a\x7f\x00")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "nan.json").write_text(remycc_file.read_text().replace("1.25", "NaN"))
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "broken.yaml").write_text("name: [unclosed\nnetwork: {")
    (tmp_path / "unknown.yaml").write_text(spec_file.read_text() + "colour: red\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\x00name: \x80")
    return tmp_path


@pytest.mark.parametrize(("command", "message"), CASES.values(), ids=CASES.keys())
def test_mistake_gives_one_sentence_and_writes_nothing(
    command: str, message: str, run: Any, folder: Path, spec_file: Path, remycc_file: Path
) -> None:
    names = {"folder": folder, "spec": spec_file, "remycc": remycc_file}
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*command.format(**names).split())
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("remy-farm: ")
    assert message.format(**names) in result.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_usage_error_refers_to_the_commands_help(run: Any) -> None:
    assert "'remy-farm simulate --help'" in run("simulate", "--senders", "0").stderr


def test_error_with_a_line_break_in_a_name_is_one_line(run: Any, tmp_path: Path) -> None:
    result = run("validate", tmp_path / "two\nlines.yaml")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_output_device_is_bad_input(remycc_file: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [Path(sys.executable).with_name("remy-farm"), "inspect", remycc_file],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert process.returncode == 2
    assert "No space left on device" in process.stderr
    assert len(process.stderr.splitlines()) == 1
