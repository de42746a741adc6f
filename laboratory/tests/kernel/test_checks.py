"""Tests the checks of a table and of the kernel before a table is loaded."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from laboratory.tests.kernel.tables import ABSOLUTE, EXACT_CLOCKS, SCALE_FREE, needs_kernel
from remy_farm.files import FileError
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_spec
from remy_laboratory.kernel.checks import check_kernel, check_table, kernel_features
from remy_simulator import RuleTable


def verdicts(path: Path, deadband_us: int = 0) -> dict[str, str]:
    spec = load_spec(path.with_name("spec.yaml"))
    findings = check_table(read_remycc(path).table, spec, deadband_us=deadband_us)
    return {finding.check: finding.verdict for finding in findings}


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
def test_tables_designed_with_noise_pass_all_checks(path: Path) -> None:
    assert set(verdicts(path).values()) == {"fine"}


def test_table_that_needs_exact_clocks_is_refused_unless_a_deadband_hides_it() -> None:
    path = EXACT_CLOCKS / "remycc.json"
    assert verdicts(path)["RTT resolution"] == "refused"
    assert verdicts(path, deadband_us=30)["RTT resolution"] == "doubtful"
    assert verdicts(path, deadband_us=100)["RTT resolution"] == "fine"
    without_spec = check_table(read_remycc(path).table, None, deadband_us=0)
    verdict_by_check = {finding.check: finding.verdict for finding in without_spec}
    assert verdict_by_check["RTT resolution"] == "refused"
    assert verdict_by_check["design"] == "doubtful"


def test_smallest_distinguished_rtt_difference_is_reported_in_us() -> None:
    spec = load_spec(ABSOLUTE.with_name("spec.yaml"))
    findings = check_table(read_remycc(ABSOLUTE).table, spec, deadband_us=0)
    finding = next(finding for finding in findings if finding.check == "RTT resolution")
    assert finding.values["smallest_increase_us"] == pytest.approx(81.7, abs=0.1)


def test_tables_that_cannot_work_are_refused() -> None:
    spec = load_spec(ABSOLUTE.with_name("spec.yaml"))
    for action, check in (((9.0, 1.0, 1.0), "fixed-point range"), ((0.5, -3.0, 1.0), "windows")):
        findings = check_table(RuleTable([0], [([], action)]), spec, deadband_us=0)
        assert [each.check for each in findings if each.verdict == "refused"] == [check]
    slow = RuleTable([0], [([], (0.5, 3.0, 1000.0))])
    by_check = {each.check: each for each in check_table(slow, spec, deadband_us=0)}
    assert by_check["paces"].values["rules"] == [0]


def _btf(parameters: int, *, has_link: bool) -> bytes:
    """Builds BTF with only the types that the checks read."""
    names = b"\0"
    types = b""

    def name(text: str) -> int:
        nonlocal names
        names += text.encode() + b"\0"
        return len(names) - len(text) - 1

    def add(title: str, kind: int, count: int, size: int, *words: int) -> None:
        nonlocal types
        head = (name(title) if title else 0, kind << 24 | count, size)
        types += struct.pack(f"<{3 + len(words)}I", *head, *words)

    add("int", 1, 0, 4, 0)
    add("", 13, parameters, 0, *([0, 1] * parameters))
    add("", 2, 0, 2)
    add("tcp_congestion_ops", 4, 1, 8, name("cong_control"), 3, 0)
    fields = {
        "tcp_sock": "tcp_mstamp first_tx_mstamp mss_cache snd_cwnd srtt_us rttvar_us app_limited",
        "rate_sample": "acked_sacked is_app_limited is_retrans",
        "inet_connection_sock": "icsk_ca_priv",
    }
    for title, members in fields.items():
        rows = [word for member in members.split() for word in (name(member), 1, 0)]
        add(title, 4, len(rows) // 3, 8, *rows)
    add("bpf_func_id", 6, 1, 4, name("BPF_FUNC_loop"), 181)
    if has_link:
        add("bpf_struct_ops_link", 4, 0, 8)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names))
    return header + types + names


@pytest.mark.parametrize(("parameters", "has_link"), [(4, True), (2, True), (4, False)])
def test_kernel_features_are_read_from_btf(parameters: int, has_link: bool, tmp_path: Path) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(_btf(parameters, has_link=has_link))
    features = kernel_features(path)
    assert features == {
        "cong_control_with_ack": parameters == 4,
        "struct_ops_links": has_link,
        "bpf_loop": True,
        "tcp_send_times": True,
    }
    assert check_kernel(path).verdict == ("fine" if all(features.values()) else "refused")


def test_kernel_without_btf_is_doubtful(tmp_path: Path) -> None:
    assert check_kernel(tmp_path / "none").verdict == "doubtful"
    (tmp_path / "other").write_bytes(b"no BTF")
    with pytest.raises(FileError, match="is not the BTF"):
        kernel_features(tmp_path / "other")


@needs_kernel
def test_this_kernel_passes() -> None:
    assert check_kernel().verdict == "fine"
