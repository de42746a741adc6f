"""Tests the signal handlers of a run."""

import signal
import threading

import pytest

from remy_farm.driver.run import call_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_calls_the_function(number: signal.Signals) -> None:
    event = threading.Event()
    with call_on_signal(event.set):
        signal.raise_signal(number)
        assert event.is_set()


def test_the_second_signal_has_its_usual_effect() -> None:
    event = threading.Event()
    with call_on_signal(event.set):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with call_on_signal(threading.Event().set):
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
