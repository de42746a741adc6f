# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Always-on TCP flows, between two network namespaces, with nothing but Python's own library.

    flows.py receive PORT
    flows.py send ADDRESS PORT ALGORITHM FLOWS SECONDS APART_SECONDS

`receive` reads what comes until standard input ends, and prints "ready" first. `send` starts FLOWS
flows, APART_SECONDS one after another, of which all end SECONDS after the first began, and prints
one JSON object: for each flow its port, when it began and ended, and what Linux sent again; and
the CPU seconds.
"""

import ctypes
import json
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time

# struct tcp_info: tcpi_total_retrans.
TOTAL_RETRANSMISSIONS = 100


def end_with_parent() -> None:
    """A killed measurement leaves nobody in its namespaces (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def receive(port: int) -> None:
    """Reads what comes, until standard input ends."""

    def drain(connection: socket.socket) -> None:
        with connection:
            try:
                while connection.recv(1 << 18):
                    pass
            except OSError:
                return

    listening = socket.create_server(("0.0.0.0", port), backlog=256)

    def accept() -> None:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=drain, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


def send(
    address: str, port: int, algorithm: str, flows: int, seconds: float, apart_seconds: float
) -> None:
    """Sends until all flows' common deadline, and prints what came of it."""
    try:
        with socket.socket() as asking:
            asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
    except OSError as error:
        sys.exit(f"{algorithm}: {error}")
    began = time.monotonic()
    deadline = began + seconds
    found: list[dict[str, float]] = []

    def flow(number: int) -> None:
        time.sleep(max(began + number * apart_seconds - time.monotonic(), 0))
        with socket.socket() as sending:
            sending.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
            # What waits here must not end the connection later than the deadline.
            sending.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sending.settimeout(seconds)
            sending.connect((address, port))
            mine = sending.getsockname()[1]
            first = time.monotonic()
            block = bytes(1 << 16)
            try:
                while (left := deadline - time.monotonic()) > 0:
                    sending.settimeout(left)
                    sending.send(block)
            except TimeoutError:
                pass
            ended = time.monotonic()
            info = sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            again = struct.unpack_from("=I", info, TOTAL_RETRANSMISSIONS)[0]
            found.append(
                {
                    "port": mine,
                    "seconds": ended - first,
                    "began_seconds": first - began,
                    "retransmissions": again,
                }
            )

    threads = [threading.Thread(target=flow, args=(number,)) for number in range(flows)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"flows": found, "cpu_seconds": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    end_with_parent()
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        _, _, address, port, algorithm, flows, seconds, apart = sys.argv
        send(address, int(port), algorithm, int(flows), float(seconds), float(apart))
