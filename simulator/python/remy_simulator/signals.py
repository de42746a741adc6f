"""The congestion signals, as declared in simulator/src/table/signals.h."""

from typing import Final

from remy_simulator._native import Per as Per
from remy_simulator._native import SignalForm as SignalForm
from remy_simulator._native import ToldBy as ToldBy
from remy_simulator._native import signal_axes

#: In the order of the enum Signal in simulator/src/table/signals.h.
AXES: Final = tuple(signal_axes())
#: All forms by name.
FORMS: Final = {form.name: form for axis in AXES for form in (axis.form(False), axis.form(True))}
