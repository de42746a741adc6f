"""Tests the doctor's checks of a coordinator's answer (`GetServerInfo`)."""

import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_services.client.doctor import Check, Verdict, check_answer

Info = messages.GetServerInfoResponse

#: The checks before these need no answer of the coordinator.
_CHECKS_OF_ANSWER = list(Check)[list(Check).index(Check.TOKEN) :]


def check_finding(
    check: Check,
    info: Info,
    client: Info | None = None,
    *,
    sent: float = 0.0,
    received: float = 0.0,
) -> tuple[Verdict, str]:
    findings = {
        finding.check: finding
        for finding in check_answer(
            info, client or Info(), sent_unix_seconds=sent, received_unix_seconds=received
        )
    }
    assert list(findings) == _CHECKS_OF_ANSWER
    finding = findings[check]
    assert bool(finding.advice) == (finding.verdict != Verdict.OK)
    return finding.verdict, finding.text


@pytest.mark.parametrize(
    ("role", "verdict"),
    [
        ("admin", Verdict.OK),
        ("submitter", Verdict.OK),
        ("viewer", Verdict.WARNING),
        ("worker", Verdict.WARNING),
        ("", Verdict.WARNING),
    ],
)
def test_role(role: str, verdict: Verdict) -> None:
    found, text = check_finding(Check.TOKEN, Info(caller="ann", role=role))
    assert found == verdict
    assert text.startswith(f"you are ann, role {role or 'none'}")


def test_store() -> None:
    store = messages.StoreInfo(
        kind="redis", version="7.2", durability="every write", durable=True, available=True
    )
    assert check_finding(Check.STORE, Info(store=store)) == (
        Verdict.OK,
        "redis 7.2: every write",
    )
    store.durable = False
    verdict, text = check_finding(Check.STORE, Info(store=store))
    assert (verdict, text) == (
        Verdict.PROBLEM,
        "redis 7.2 may lose acknowledged work: every write",
    )
    store.available, store.trouble = False, "disk full"
    verdict, text = check_finding(Check.STORE, Info(store=store))
    assert verdict == Verdict.PROBLEM
    assert "disk full" in text


@pytest.mark.parametrize(
    ("evaluators", "verdict"),
    [
        (messages.EvaluatorsInfo(kind="local", threads=4), Verdict.OK),
        (messages.EvaluatorsInfo(kind="workers", workers=3, threads=12), Verdict.OK),
        (messages.EvaluatorsInfo(kind="workers", tasks_waiting=7), Verdict.PROBLEM),
        (
            messages.EvaluatorsInfo(kind="workers", workers=3, quarantined_workers=1),
            Verdict.PROBLEM,
        ),
    ],
)
def test_workers(evaluators: messages.EvaluatorsInfo, verdict: Verdict) -> None:
    assert check_finding(Check.WORKERS, Info(evaluators=evaluators))[0] == verdict


@pytest.mark.parametrize(
    ("version", "simulator", "digests", "verdict"),
    [
        ("1.2", "3.4", ("d", "s", "p", "m", "n"), Verdict.OK),
        ("1.2", "3.4", ("", "s", "p", "m", "n"), Verdict.OK),
        # Older coordinators send fewer digests.
        ("1.2", "3.4", ("d", "", "", "", ""), Verdict.OK),
        ("1.2", "3.4", ("d", "s", "", "", ""), Verdict.OK),
        ("1.2", "3.4", ("d", "s", "p", "m", ""), Verdict.OK),
        ("1.3", "3.4", ("d", "s", "p", "m", "n"), Verdict.WARNING),
        ("1.2", "3.5", ("d", "s", "p", "m", "n"), Verdict.WARNING),
        ("1.2", "3.4", ("other", "s", "p", "m", "n"), Verdict.PROBLEM),
        ("1.2", "3.4", ("d", "other", "p", "m", "n"), Verdict.PROBLEM),
        ("1.2", "3.4", ("d", "s", "other", "m", "n"), Verdict.PROBLEM),
        ("1.2", "3.4", ("d", "s", "p", "other", "n"), Verdict.PROBLEM),
        ("1.2", "3.4", ("d", "s", "p", "m", "other"), Verdict.PROBLEM),
    ],
)
def test_versions(version: str, simulator: str, digests: tuple[str, ...], verdict: Verdict) -> None:
    def answered(version: str, simulator: str, digests: tuple[str, ...]) -> Info:
        return Info(
            version=version,
            simulator_version=simulator,
            simulator_digest=digests[0],
            scale_free_digest=digests[1],
            protocols_digest=digests[2],
            path_model_digest=digests[3],
            network_signals_digest=digests[4],
        )

    info = answered(version, simulator, digests)
    client = answered("1.2", "3.4", ("d", "s", "p", "m", "n"))
    assert check_finding(Check.VERSIONS, info, client)[0] == verdict


@pytest.mark.parametrize(
    ("coordinator", "sent", "received", "verdict"),
    [
        (1000.0, 1000.0, 1000.1, Verdict.OK),
        (1020.0, 1000.0, 1000.1, Verdict.PROBLEM),
        (980.0, 1000.0, 1000.1, Verdict.PROBLEM),
        # The round trip was so long that the clock difference is within its uncertainty.
        (1020.0, 1000.0, 1040.0, Verdict.OK),
        (1001.0, 1000.0, 1040.0, Verdict.OK),
    ],
)
def test_clock(coordinator: float, sent: float, received: float, verdict: Verdict) -> None:
    found = check_finding(Check.CLOCK, Info(unix_seconds=coordinator), sent=sent, received=received)
    assert found[0] == verdict
