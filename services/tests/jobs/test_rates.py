"""How fast a job goes."""

from remy_services.jobs.progress import RateMeter, Rates


def test_a_steady_pace_is_measured() -> None:
    meter = RateMeter(0.0)
    for second in range(1, 31):
        meter.reached(second, 10 * second, 1000 * second)
    assert meter.rates(30) == Rates(10, 1000)


def test_only_the_last_minute_or_so_counts() -> None:
    meter = RateMeter(0.0)
    for second in range(1, 101):
        meter.reached(second, 1000 * second, 0)
    for second in range(101, 201):
        meter.reached(second, 100_000, 0)
    assert meter.rates(200) == Rates(0, 0)


def test_a_pause_lowers_the_pace() -> None:
    meter = RateMeter(0.0)
    meter.reached(10, 100, 0)
    assert meter.rates(20) == Rates(5, 0)


def test_a_resumed_job_does_not_begin_with_a_leap() -> None:
    meter = RateMeter(5.0, 10**9, 10**12)
    meter.reached(6, 10**9 + 50, 10**12 + 500)
    assert meter.rates(6) == Rates(50, 500)


def test_what_was_abandoned_makes_no_negative_pace() -> None:
    meter = RateMeter(0.0)
    meter.reached(1, 100, 100)
    meter.reached(2, 0, 0)
    assert meter.rates(2) == Rates(0, 0)


def test_there_is_no_pace_before_the_first_report() -> None:
    assert RateMeter(3.0).rates(3.0) == Rates()


def test_many_reports_need_no_memory() -> None:
    meter = RateMeter(0.0)
    for number in range(100_000):
        meter.reached(number / 1000, number, number)
    assert len(meter._samples) < 150
    assert abs(meter.rates(100).evaluations - 1000) < 20


def test_workers_are_forgotten_a_minute_after_their_last_result() -> None:
    meter = RateMeter(0.0)
    meter.worked(0, frozenset({"a", "b"}))
    meter.worked(50, frozenset({"b", "c"}))
    assert meter.workers(50) == 3
    assert meter.workers(70) == 2
    assert meter.workers(200) == 0
