"""Tests RateMeter."""

from remy_services.jobs.progress import RateMeter, Rates


def test_a_steady_rate_is_measured() -> None:
    meter = RateMeter(0.0)
    for second in range(1, 31):
        meter.record_totals(second, 10 * second, 1000 * second)
    assert meter.rates(30) == Rates(10, 1000)


def test_only_about_the_last_minute_counts() -> None:
    meter = RateMeter(0.0)
    for second in range(1, 101):
        meter.record_totals(second, 1000 * second, 0)
    for second in range(101, 201):
        meter.record_totals(second, 100_000, 0)
    assert meter.rates(200) == Rates(0, 0)


def test_idle_time_lowers_the_rate() -> None:
    meter = RateMeter(0.0)
    meter.record_totals(10, 100, 0)
    assert meter.rates(20) == Rates(5, 0)


def test_earlier_totals_do_not_count_after_a_resume() -> None:
    meter = RateMeter(5.0, 10**9, 10**12)
    meter.record_totals(6, 10**9 + 50, 10**12 + 500)
    assert meter.rates(6) == Rates(50, 500)


def test_abandoned_work_gives_no_negative_rate() -> None:
    meter = RateMeter(0.0)
    meter.record_totals(1, 100, 100)
    meter.record_totals(2, 0, 0)
    assert meter.rates(2) == Rates(0, 0)


def test_rates_are_zero_before_the_first_report() -> None:
    assert RateMeter(3.0).rates(3.0) == Rates()


def test_memory_is_bounded_for_many_reports() -> None:
    meter = RateMeter(0.0)
    for number in range(100_000):
        meter.record_totals(number / 1000, number, number)
    assert len(meter._samples) < 150
    assert abs(meter.rates(100).evaluations - 1000) < 20


def test_workers_expire_a_minute_after_their_last_result() -> None:
    meter = RateMeter(0.0)
    meter.record_workers(0, frozenset({"a", "b"}))
    meter.record_workers(50, frozenset({"b", "c"}))
    assert meter.workers(50) == 3
    assert meter.workers(70) == 2
    assert meter.workers(200) == 0
