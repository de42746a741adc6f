"""Converts a simulation's recording over time to rows for a file, and plots it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from remy_farm.analysis.rows import Columns, Row
from remy_farm.evaluation.simulation import Simulation
from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native
from remy_simulator.messages import packet_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BITS_PER_BYTE = 8
_BITS_PER_MS_IN_MBPS = 1000.0


@dataclass(frozen=True)
class Recording:
    """The state of one network at equal time steps; matrices have one row per time."""

    kinds: Sequence[str]
    """Kind of each sender."""
    links: Sequence[str]
    """Names of the links; a single empty string if there is only one link."""
    time_ms: np.ndarray
    is_on: np.ndarray
    window_packets: np.ndarray
    rate_mbps: np.ndarray
    rtt_ms: np.ndarray
    """0 before the first ACK."""
    queue_packets: np.ndarray
    """Queue length by link."""
    drops: np.ndarray
    """Packets of all senders dropped by each link's queue since the previous row."""

    def columns(self) -> Columns:
        """Returns the columns of the rows; there is one row per sender and time."""
        kinds: dict[str, type] = {
            "time_ms": float,
            "sender": int,
            "kind": str,
            "on": bool,
            "window_packets": float,
            # Throughput since the previous row.
            "rate_mbps": float,
            # RTT of the last ACK.
            "rtt_ms": float,
            **{name: int for link in self.links for name in _link_columns(link)},
        }
        return {name: (kind, itemgetter(name)) for name, kind in kinds.items()}

    def rows(self) -> list[Row]:
        """Returns the rows, with the values of `columns`; rows of one time repeat its queues."""
        queues = [
            {
                name: int(values[step, link])
                for link, link_name in enumerate(self.links)
                for name, values in zip(
                    _link_columns(link_name), (self.queue_packets, self.drops), strict=True
                )
            }
            for step in range(len(self.time_ms))
        ]
        return [
            {
                "time_ms": time_ms,
                "sender": sender,
                "kind": kind,
                "on": bool(self.is_on[step, sender]),
                "window_packets": float(self.window_packets[step, sender]),
                "rate_mbps": float(self.rate_mbps[step, sender]),
                "rtt_ms": float(self.rtt_ms[step, sender]) or None,
                **queues[step],
            }
            for step, time_ms in enumerate(self.time_ms.tolist())
            for sender, kind in enumerate(self.kinds)
        ]


def _link_columns(name: str) -> tuple[str, str]:
    return (f"queue_packets_{name}", f"drops_{name}") if name else ("queue_packets", "drops")


def recording_of(
    seen: _native.NetworkRecording,
    specimen: evaluation_pb2.Specimen,
    kinds: Sequence[str],
    links: Sequence[str],
    every_ms: float,
) -> Recording:
    """Converts the simulator's recording of a specimen."""
    steps = len(seen.time_ms)

    def matrix(values: Sequence[float], width: int = len(kinds)) -> np.ndarray:
        return np.array(values, dtype=float).reshape(steps, width)

    # An unnamed link for ACKs may follow the named ones.
    width = len(seen.waiting_packets) // max(steps, 1)
    megabits = packet_bytes(specimen.bottleneck) * _BITS_PER_BYTE / _BITS_PER_MS_IN_MBPS
    received = np.diff(matrix(seen.packets_received), axis=0, prepend=0.0)
    return Recording(
        kinds=kinds,
        links=links,
        time_ms=np.array(seen.time_ms),
        is_on=matrix(seen.is_on),
        window_packets=matrix(seen.window_packets),
        rate_mbps=received * megabits / every_ms,
        rtt_ms=matrix(seen.rtt_ms),
        queue_packets=matrix(seen.waiting_packets, width)[:, : len(links)],
        drops=np.diff(matrix(seen.dropped, width)[:, : len(links)], axis=0, prepend=0.0),
    )


@dataclass(frozen=True)
class SenderPoint:
    """A sender's point in the plot of throughput against delay."""

    kind: str
    throughput_mbps: float
    delay_ms: float


def recording_of_simulation(simulation: Simulation, links: Sequence[str]) -> Recording:
    """Returns the recording of a simulation. Raises ValueError if nothing was recorded."""
    if simulation.recording is None:
        raise ValueError("the simulation has no recording; simulate with record_every_ms")
    return recording_of(
        simulation.recording,
        simulation.specimen,
        simulation.kind_names,
        links,
        simulation.record_every_ms,
    )


def sender_points(simulation: Simulation) -> list[SenderPoint]:
    """Returns a point for every sender that received packets."""
    return [
        SenderPoint(name, sender.throughput_mbps, sender.delay_ms)
        for name, sender in zip(simulation.kind_names, simulation.senders, strict=True)
        if sender.delay_ms is not None
    ]


# Maximum number of senders whose windows are drawn.
_MAX_LINES = 24
# Maximum number of points of a line; about the width of the plot in pixels.
_PIXELS = 1200


def draw_recording(recording: Recording, points: Sequence[SenderPoint]) -> Figure:
    """Draws queues with their drops, and windows, over time, and throughput against delay.

    Delay grows to the left, so that better senders are further up and to the right.
    """
    from matplotlib.lines import Line2D

    from remy_farm.analysis.plots import COLORS, FIRST, INK, MUTED, label_axes, new_axes

    names = list(dict.fromkeys(recording.kinds))
    color = {name: COLORS[number % len(COLORS)] for number, name in enumerate(names)}
    figure, (queue, windows, plane) = new_axes(12.0, 6.2, "qp;wp", "qwp")
    seconds = recording.time_ms / 1000.0
    step = max(1, len(seconds) // _PIXELS)
    for link, link_name in enumerate(recording.links):
        shade = COLORS[-1 - link % len(COLORS)] if link_name else MUTED
        # A pixel shows the maximum of its time steps.
        peaks = np.maximum.reduceat(
            recording.queue_packets[:, link], np.arange(0, len(seconds), step)
        )
        if not link_name:
            queue.fill_between(
                seconds[::step], peaks, color=shade, alpha=0.35, linewidth=0, step="post"
            )
        queue.plot(
            seconds[::step],
            peaks,
            color=shade,
            linewidth=0.9,
            drawstyle="steps-post",
            label=f"link {link_name}",
        )
    if any(recording.links):
        queue.legend(frameon=False, fontsize=8.5, labelcolor=INK, loc="upper left")
    lost = recording.drops.any(axis=1)
    queue.plot(
        seconds[lost],
        np.full(int(lost.sum()), 0.97),
        transform=queue.get_xaxis_transform(),
        linestyle="none",
        marker="|",
        markersize=8,
        color=FIRST,
        alpha=0.6,
    )
    queue.set_ylim(bottom=0)
    queue.margins(y=0.12)
    drops = int(recording.drops.sum())
    marks = f"; ticks above: {drops} dropped" if drops else ""
    queues = "Queues" if len(recording.links) > 1 else "Queue"
    label_axes(queue, title=f"{queues}{marks}", x="", y="packets")
    for sender, name in list(enumerate(recording.kinds))[:_MAX_LINES]:
        on = np.where(recording.is_on[::step, sender] > 0, 1.0, np.nan)
        windows.plot(
            seconds[::step],
            recording.window_packets[::step, sender] * on,
            color=color[name],
            linewidth=1.0,
            alpha=0.85,
        )
    windows.set_ylim(bottom=0)
    windows.sharex(queue)
    label_axes(windows, title="Windows", x="time, s", y="packets")
    for name in names:
        own_points = [point for point in points if point.kind == name]
        delays = [point.delay_ms for point in own_points]
        rates = [point.throughput_mbps for point in own_points]
        plane.scatter(delays, rates, s=26, color=color[name], alpha=0.45, linewidths=0)
        if own_points:
            plane.plot(
                float(np.median(delays)),
                float(np.median(rates)),
                marker="o",
                markersize=9,
                markeredgecolor="white",
                markeredgewidth=1.2,
                linestyle="none",
                color=color[name],
            )
    plane.set_ylim(bottom=0)
    plane.margins(x=0.15)
    plane.invert_xaxis()
    label_axes(
        plane,
        title="Throughput and delay, large: medians",
        x="delay, ms  (less is to the right)",
        y="throughput, Mbit/s",
    )
    figure.legend(
        handles=[
            Line2D([], [], color=color[name], marker="o", linewidth=1.6, label=name)
            for name in names
        ],
        loc="outside lower center",
        ncols=min(len(names), 4),
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
    )
    return figure


def plot_recording(recording: Recording, points: Sequence[SenderPoint]) -> bytes:
    """Draws like `draw_recording`, and returns the PNG."""
    from remy_farm.analysis.plots import to_png

    return to_png(draw_recording(recording, points))
