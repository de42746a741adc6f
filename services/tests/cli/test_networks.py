"""Tests `simulate --network` with links, routes and groups of senders."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

RunJson = Callable[..., dict[str, Any]]

EXAMPLES = sorted(Path("examples/networks").glob("*.yaml"))
ONE_LINK = """
links:
  - {rate_mbps: 12, buffer: {packets: 40}, queue: codel, loss_probability: 0.01}
rtt_ms: 80
senders:
  - protocol: cubic,beta=0.8
    count: 2
    traffic: {exponential_time: {mean_ms: 900}, mean_off_ms: 300}
  - protocol: vegas
    traffic: {exponential_time: {mean_ms: 900}, mean_off_ms: 300}
"""


def write_network(folder: Path, text: str) -> Path:
    path = folder / "network.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_network_runs(path: Path, run: Any, run_json: RunJson) -> None:
    flags = ("--network", path, "--seconds", 8)
    output = run_json("simulate", *flags)
    assert all(kind["packets_received"] > 0 for kind in output["kinds"])
    assert sum(link["transmitted"] for link in output["links"]) >= output["packets_received"]
    printed = run("simulate", *flags).stdout
    for name in [kind["kind"] for kind in output["kinds"]] + [
        link["link"] for link in output["links"]
    ]:
        assert name in printed


def test_network_file_and_options_give_the_same_results(run_json: RunJson, tmp_path: Path) -> None:
    from_file = run_json(
        "simulate", "--network", write_network(tmp_path, ONE_LINK), "--seconds", 20
    )
    arguments = "--sender cubic,beta=0.8=2 --sender vegas --queue codel --rate-mbps 12 --rtt-ms 80"
    traffic = "--on-ms 900 --off-ms 300 --buffer-packets 40 --loss-probability 0.01 --seconds 20"
    from_options = run_json("simulate", *arguments.split(), *traffic.split())
    for output in (from_file, from_options):
        del output["cpu_seconds"]
    (link,) = from_file.pop("links")
    assert from_file == from_options
    assert link["dropped"] + link["lost"] == sum(
        sender["packets_lost"] for sender in from_options["senders"]
    )


def test_senders_may_have_different_rtts(run_json: RunJson) -> None:
    output = run_json(
        "simulate",
        *("--sender", "vegas,rtt_ms=40", "--sender", "vegas,rtt_ms=120=2"),
        *"--rate-mbps 100 --rtt-ms 80 --on-ms 500 --off-ms 500 --seconds 10".split(),
    )
    near, far = output["kinds"]
    assert (near["senders"], far["senders"]) == (1, 2)
    assert 40 < near["delay_ms"] < 45
    assert 120 < far["delay_ms"] < 125
    # Each sender's delay is divided by its own RTT.
    assert output["delay_over_rtt"] == pytest.approx(1, abs=0.05)


def test_incast_waits_for_the_slowest_flow(run_json: RunJson, tmp_path: Path) -> None:
    text = """
links: [{rate_mbps: 12}]
senders:
  - protocol: newreno
    count: 4
    route: {delay_ms: 5, return_delay_ms: 5}
    traffic: {constant_bytes: {bytes: 15000}, barrier: {pause_ms: 10}}
"""
    (kind,) = run_json("simulate", "--network", write_network(tmp_path, text), "--seconds", 10)[
        "kinds"
    ]
    # Four responses of ten packets at 1 ms each, one RTT, then the pause.
    assert kind["completion_ms_percentile_99"] >= 40 + 10
    assert kind["flows_completed"] <= 4 * 10_000 / 60 + 4


def test_bursts_overflow_a_shallow_buffer_but_paced_packets_do_not(
    run_json: RunJson, tmp_path: Path
) -> None:
    bursts = Path("examples/networks/offload-bursts.yaml").read_text(encoding="utf-8")
    single = bursts.replace(", jitter_box: {batches: {packets: 16, longest_wait_ms: 5}}", "")
    assert single != bursts
    # The link has 100 Mbit/s, so Mbit/s are also percent.
    senders = [
        run_json("simulate", "--network", write_network(tmp_path, text), "--seconds", 100)[
            "senders"
        ][0]
        for text in (bursts, single)
    ]
    assert [round(sender["throughput_mbps"]) for sender in senders] == [4, 87]


def test_recording_has_the_names_of_links(run_json: RunJson, tmp_path: Path) -> None:
    file, picture = tmp_path / "run.csv", tmp_path / "run.png"
    flags = ("--network", "examples/networks/parking-lot.yaml", "--seconds", 5)
    run_json("simulate", *flags, "--record", file, "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {"queue_packets_first", "drops_first", "queue_packets_second"} <= set(rows[0])
    assert max(int(row["queue_packets_first"]) for row in rows) > 0
    assert "queue_packets" not in rows[0]


def test_network_file_may_name_remyccs(
    run_json: RunJson, remycc_file: Path, tmp_path: Path
) -> None:
    text = f"""
links:
  - {{rate_mbps: 12, delay_ms: 20}}
  - {{rate_mbps: 24, delay_ms: 20}}
senders:
  - name: both
    table: {remycc_file}
    route: {{return_delay_ms: 40}}
    traffic: {{always: {{}}}}
  - name: second
    table: {remycc_file}
    transport: ns2
    route: {{links: [1], return_delay_ms: 20}}
    traffic: {{always: {{}}}}
"""
    both, second = run_json("simulate", "--network", write_network(tmp_path, text), "--seconds", 5)[
        "kinds"
    ]
    assert (both["throughput_of"], second["throughput_of"]) == (
        "packets_received",
        "packets_in_order",
    )
    assert 80 < both["delay_ms"] < 300
    assert 40 < second["delay_ms"] < 300


def test_remycc_path_is_relative_to_the_network_file(
    run_json: RunJson, remycc_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.json").write_bytes(remycc_file.read_bytes())
    path = write_network(
        tmp_path, "rate_mbps: 5\nrtt_ms: 50\nsenders: [{table: own.json, name: own}]\n"
    )
    arguments = ("simulate", "--network", path, "--seconds", 2)
    assert [each["kind"] for each in run_json(*arguments)["kinds"]] == ["own"]
    # A path on the command line is relative to the working directory.
    output = run_json(*arguments, "--sender", f"remycc:{remycc_file}=2")
    assert [each["senders"] for each in output["kinds"]] == [1, 2]


def test_simulation_of_thousands_of_senders(run_json: RunJson, remycc_file: Path) -> None:
    arguments = "--rate-mbps 100 --rtt-ms 50 --seconds 0.2".split()
    output = run_json("simulate", "--remycc", remycc_file, "--senders", 1500, *arguments)
    assert len(output["senders"]) == 1500


BAD = {
    "no links": ("senders: [{protocol: cubic, traffic: {always: {}}}]", "rate_mbps is missing"),
    "no senders": ("links: [{rate_mbps: 1}]", "senders is missing"),
    "unknown key": (ONE_LINK + "lnks: []", "did you mean links?"),
    "unknown key of a link": (ONE_LINK.replace("buffer:", "bufer:"), "did you mean buffer?"),
    "former key of a link": (
        ONE_LINK.replace("buffer: {packets: 40}", "buffer_packets: 40"),
        "links[0].buffer_packets is not a known key; it is buffer.packets now",
    ),
    "unknown link": (
        ONE_LINK.replace("    count: 2\n", "    route: {links: [0, 3]}\n"),
        "senders[0].route.links has '3', but the network's links are 0",
    ),
    "unknown protocol": (ONE_LINK.replace("vegas", "vegan"), 'no protocol "vegan"'),
    "unknown queue": (ONE_LINK.replace("codel", "coddle"), "links[0].queue"),
    "rate of zero": (ONE_LINK.replace("rate_mbps: 12", "rate_mbps: 0"), "links[0].rate_mbps is 0"),
    "number of senders that is text": (
        ONE_LINK.replace("cubic,beta=0.8", "cubic=3"),
        "the key for the number of senders is count",
    ),
    "protocol and table": (
        ONE_LINK.replace("count: 2", "table: some.json"),
        "senders[0] has protocol and table, but must have one of them",
    ),
    "table instead of a protocol": (
        ONE_LINK.replace("vegas", "remycc:some.json"),
        "the key of a RemyCC's file is table",
    ),
    "former key of a sender": (
        ONE_LINK.replace("protocol: vegas", "sender: vegas"),
        "senders[1].sender is not a known key; it is protocol or table now",
    ),
    "protocol on datagrams": (
        ONE_LINK.replace("count: 2", "transport: datagram"),
        "senders[0].transport is 'datagram', but that runs RemyCCs only",
    ),
    "RTT and route": (
        ONE_LINK.replace("count: 2", "rtt_ms: 50\n    route: {delay_ms: 5}"),
        "senders[0].route.delay_ms is given beside rtt_ms",
    ),
    "traffic without flow lengths": (
        ONE_LINK.replace("exponential_time: {mean_ms: 900}, ", "", 1),
        "senders[0].traffic must have one of the keys exponential_time",
    ),
    "keys of a single link with links": (
        ONE_LINK + "rate_mbps: 5",
        "the network has links and rate_mbps",
    ),
    "Poisson arrivals of flows by time": (
        ONE_LINK.replace("mean_off_ms: 300", "poisson: {mean_interval_ms: 10}"),
        "must have flows by bytes",
    ),
    "unknown flow lengths": (
        ONE_LINK.replace("exponential_time: {mean_ms: 900}", "empirical_bytes: {name: caida}"),
        "there are: icsi",
    ),
    "decreasing quantiles": (
        ONE_LINK.replace(
            "exponential_time: {mean_ms: 900}",
            "empirical_bytes: {probabilities: [0.5, 0.2], bytes: [1, 2]}",
        ),
        "above the previous one",
    ),
    "fractional number of senders": (
        ONE_LINK.replace("count: 2", "count: 2.5"),
        "senders[0].count is 2.5",
    ),
    "group without senders": (ONE_LINK.replace("count: 2", "count: 0"), "senders[0].count is 0"),
    "duplicate link name": (
        ONE_LINK.replace("rtt_ms: 80", "  - {name: '0', rate_mbps: 1}\nrtt_ms: 80"),
        "links[1].name is '0', but another link has that name",
    ),
    "trace without semantics": (
        ONE_LINK.replace("rate_mbps: 12", "trace: {ends: true}"),
        "semantics is missing",
    ),
    "policer without a burst size": (
        ONE_LINK.replace("rate_mbps: 12", "rate_mbps: 12, policer: {rate_mbps: 1}"),
        "burst_packets is missing",
    ),
    "not a mapping": ("- 1", "must be a network"),
    "not YAML": ("links: [", "is not YAML"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_network_file_is_refused_in_a_sentence(name: str, run: Any, tmp_path: Path) -> None:
    text, expected = BAD[name]
    result = run("simulate", "--network", write_network(tmp_path, text), "--seconds", 1)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") <= 2


def test_incast_with_persistent_connections_waits_for_the_minimum_rto(
    run_json: RunJson, tmp_path: Path
) -> None:
    text = Path("examples/networks/incast.yaml").read_text()
    assert "keep_state=1" in text
    medians_ms = []
    for each in (text, text.replace(",keep_state=1", "")):
        path = write_network(tmp_path, each)
        (kind,) = run_json("simulate", "--network", path, "--seconds", 10)["kinds"]
        medians_ms.append(kind["completion_ms_median"])
    assert 200 < medians_ms[0] < 300
    assert 1000 < medians_ms[1] < 1100


def write_trace(folder: Path, times_ms: Iterable[int]) -> Path:
    path = folder / "link.trace"
    path.write_text("".join(f"{time_ms}\n" for time_ms in times_ms))
    return path


ON_A_TRACE = "--sender cubic=2 --rtt-ms 80 --on-ms 900 --off-ms 300 --seconds 1".split()


def test_set_options_are_equivalent_to_a_file(run_json: RunJson, tmp_path: Path) -> None:
    recorded = write_trace(tmp_path, (each * each // 40 for each in range(1, 500)))
    links = f"[{{trace: {{path: {recorded}, semantics: mahimahi}}, buffer: {{packets: 40}}}}]"
    traffic = "{exponential_time: {mean_ms: 900}, mean_off_ms: 300}"
    text = f"rtt_ms: 80\nsenders: [cubic=2]\nlinks: {links}\ntraffic: {traffic}\n"
    from_file = run_json("simulate", "--network", write_network(tmp_path, text), "--seconds", 1)
    from_options = run_json("simulate", "--set", f"links={links}", *ON_A_TRACE)
    for output in (from_file, from_options):
        del output["cpu_seconds"]
    assert from_file == from_options


def test_options_override_a_file(run_json: RunJson, tmp_path: Path) -> None:
    slow = write_network(
        tmp_path, "rate_mbps: 3\nrtt_ms: 40\nbuffer: {packets: 9}\nsenders: [cubic]\n"
    )
    with_option = run_json("simulate", "--network", slow, "--seconds", 5, "--set", "buffer.bdp=2")
    expected = tmp_path / "expected.yaml"
    expected.write_text("rate_mbps: 3\nrtt_ms: 40\nbuffer: {bdp: 2}\nsenders: [cubic]\n")
    assert (
        with_option["digest"]
        == run_json("simulate", "--network", expected, "--seconds", 5)["digest"]
    )


def test_invalid_trace_is_refused_with_its_line(run: Any, tmp_path: Path) -> None:
    path = write_trace(tmp_path, [5, 4])
    result = run("simulate", "--set", f"links=[{{trace: {{path: {path}}}}}]", *ON_A_TRACE)
    assert result.exit_code == 2
    assert "link.trace, line 2: 4 comes after 5" in result.stderr
