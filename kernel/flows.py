# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""TCP flows between two network namespaces, using only Python's standard library.

    flows.py receive PORT
    flows.py send ADDRESS PORT ALGORITHM,... SECONDS APART_SECONDS
    flows.py serve PORT ALGORITHM BYTES CERTIFICATE KEY
    flows.py download ADDRESS PORT CERTIFICATE SECONDS

`receive` prints "ready" and discards all data until standard input ends.

`send` starts one always-on flow for each algorithm, APART_SECONDS after the one before. All flows
end SECONDS after the first began. It prints one JSON object: the port, algorithm, start, duration
and retransmissions of each flow, and the CPU seconds of this process.

`serve` answers each HTTPS request with BYTES bytes until standard input ends. It then prints the
same JSON object for the last request. `download` makes such a request and prints the number of
bytes and seconds; it fails after SECONDS.
"""

import ctypes
import http.client
import http.server
import json
import os
import resource
import signal
import socket
import ssl
import struct
import sys
import threading
import time

# Offset of tcpi_total_retrans in struct tcp_info.
TOTAL_RETRANSMISSIONS = 100


def end_with_parent() -> None:
    """Makes this process die with its parent, so that a killed measurement leaves none behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def receive(port: int) -> None:
    """Accepts connections and discards their data until standard input ends."""

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


def set_congestion_control(sending: socket.socket, algorithm: str) -> None:
    """Sets the congestion control of a socket; exits with a message if Linux refuses."""
    try:
        sending.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
    except OSError as error:
        sys.exit(f"{algorithm}: {error}")


def retransmissions(sending: socket.socket) -> int:
    """The number of segments that Linux has retransmitted on a connection."""
    info = sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", info, TOTAL_RETRANSMISSIONS)[0])


def cpu_seconds() -> float:
    """CPU time of this process, in user space and in the kernel."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def send(
    address: str, port: int, algorithms: list[str], seconds: float, apart_seconds: float
) -> None:
    """Runs one flow for each algorithm until a common deadline, and prints a report of each."""
    for algorithm in algorithms:
        with socket.socket() as probe:
            set_congestion_control(probe, algorithm)
    began = time.monotonic()
    deadline = began + seconds
    reports: list[dict[str, object]] = []

    def flow(number: int) -> None:
        time.sleep(max(began + number * apart_seconds - time.monotonic(), 0))
        with socket.socket() as sending:
            set_congestion_control(sending, algorithms[number])
            # Discard unsent data on close, so that the flow ends at the deadline.
            sending.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sending.settimeout(seconds)
            sending.connect((address, port))
            own_port = sending.getsockname()[1]
            first = time.monotonic()
            block = bytes(1 << 16)
            try:
                while (remaining := deadline - time.monotonic()) > 0:
                    sending.settimeout(remaining)
                    sending.send(block)
            except TimeoutError:
                pass
            ended = time.monotonic()
            reports.append(
                {
                    "port": own_port,
                    "algorithm": algorithms[number],
                    "seconds": ended - first,
                    "began_seconds": first - began,
                    "retransmissions": retransmissions(sending),
                }
            )

    threads = [threading.Thread(target=flow, args=(number,)) for number in range(len(algorithms))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"flows": reports, "cpu_seconds": cpu_seconds()}))


def serve(port: int, algorithm: str, length: int, certificate: str, key: str) -> None:
    """Answers HTTPS requests until standard input ends, and prints a report of the last one."""
    report: dict[str, object] = {"port": port, "algorithm": algorithm}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            began = time.monotonic()
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            block = bytes(1 << 16)
            for start in range(0, length, len(block)):
                self.wfile.write(block[: length - start])
            report.update(
                seconds=time.monotonic() - began,
                began_seconds=0,
                retransmissions=retransmissions(self.connection),
            )

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler)
    # Accepted sockets inherit the congestion control of the listening one.
    set_congestion_control(server.socket, algorithm)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps({"flows": [report], "cpu_seconds": cpu_seconds()}), flush=True)
    os._exit(0)


def download(address: str, port: int, certificate: str, seconds: float) -> None:
    """Downloads once over a new connection, and prints the number of bytes and seconds."""
    began = time.monotonic()
    context = ssl.create_default_context(cafile=certificate)
    client = http.client.HTTPSConnection(address, port, timeout=seconds, context=context)
    client.request("GET", "/")
    response = client.getresponse()
    length = 0
    while data := response.read(1 << 16):
        length += len(data)
        if time.monotonic() - began > seconds:
            sys.exit(f"the download took longer than {seconds:g} s")
    print(json.dumps({"bytes": length, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    end_with_parent()
    command, *arguments = sys.argv[1:]
    if command == "receive":
        receive(int(arguments[0]))
    elif command == "send":
        send(
            arguments[0],
            int(arguments[1]),
            arguments[2].split(","),
            float(arguments[3]),
            float(arguments[4]),
        )
    elif command == "serve":
        serve(int(arguments[0]), arguments[1], int(arguments[2]), arguments[3], arguments[4])
    else:
        download(arguments[0], int(arguments[1]), arguments[2], float(arguments[3]))
