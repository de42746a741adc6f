# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""TCP flows between two network namespaces, with nothing but Python's own library.

    flows.py receive PORT
    flows.py send ADDRESS PORT ALGORITHM,... SECONDS APART_SECONDS
    flows.py serve PORT ALGORITHM BYTES CERTIFICATE KEY
    flows.py download ADDRESS PORT CERTIFICATE SECONDS

`receive` reads what comes until standard input ends, and prints "ready" first. `send` starts an
always-on flow for each algorithm, APART_SECONDS one after another, of which all end SECONDS after
the first began, and prints one JSON object: for each flow its port, its algorithm, when it began
and ended, and what Linux sent again; and the CPU seconds. `serve` answers HTTPS requests with BYTES
bytes, and at the end of standard input prints the same of the last of them; `download` asks for
them and prints how many came in how long, or fails after SECONDS.
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


def use(sending: socket.socket, algorithm: str) -> None:
    """Has a socket run an algorithm, or ends with a sentence."""
    try:
        sending.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
    except OSError as error:
        sys.exit(f"{algorithm}: {error}")


def retransmissions(sending: socket.socket) -> int:
    """How many segments Linux has sent again."""
    info = sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", info, TOTAL_RETRANSMISSIONS)[0])


def cpu_seconds() -> float:
    """That this process has used, in the kernel, too."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def send(
    address: str, port: int, algorithms: list[str], seconds: float, apart_seconds: float
) -> None:
    """Sends until all flows' common deadline, and prints what came of it."""
    for algorithm in algorithms:
        with socket.socket() as asking:
            use(asking, algorithm)
    began = time.monotonic()
    deadline = began + seconds
    found: list[dict[str, object]] = []

    def flow(number: int) -> None:
        time.sleep(max(began + number * apart_seconds - time.monotonic(), 0))
        with socket.socket() as sending:
            use(sending, algorithms[number])
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
            found.append(
                {
                    "port": mine,
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
    print(json.dumps({"flows": found, "cpu_seconds": cpu_seconds()}))


def serve(port: int, algorithm: str, length: int, certificate: str, key: str) -> None:
    """Answers HTTPS requests until standard input ends, and prints what came of the last."""
    done: dict[str, object] = {"port": port, "algorithm": algorithm}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            began = time.monotonic()
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            block = bytes(1 << 16)
            for start in range(0, length, len(block)):
                self.wfile.write(block[: length - start])
            again = retransmissions(self.connection)
            done.update(seconds=time.monotonic() - began, began_seconds=0, retransmissions=again)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler)
    # Sockets that it accepts have the algorithm of the one that listens.
    use(server.socket, algorithm)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps({"flows": [done], "cpu_seconds": cpu_seconds()}), flush=True)
    os._exit(0)


def download(address: str, port: int, certificate: str, seconds: float) -> None:
    """Asks once, from the connection's beginning, and prints how long it took."""
    began = time.monotonic()
    context = ssl.create_default_context(cafile=certificate)
    asking = http.client.HTTPSConnection(address, port, timeout=seconds, context=context)
    asking.request("GET", "/")
    answer = asking.getresponse()
    length = 0
    while data := answer.read(1 << 16):
        length += len(data)
        if time.monotonic() - began > seconds:
            sys.exit(f"the download took longer than {seconds:g} s")
    print(json.dumps({"bytes": length, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    end_with_parent()
    what, *words = sys.argv[1:]
    if what == "receive":
        receive(int(words[0]))
    elif what == "send":
        send(words[0], int(words[1]), words[2].split(","), float(words[3]), float(words[4]))
    elif what == "serve":
        serve(int(words[0]), words[1], int(words[2]), words[3], words[4])
    else:
        download(words[0], int(words[1]), words[2], float(words[3]))
