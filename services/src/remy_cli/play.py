"""`remy-farm play`: serves the page that simulates a live network in a browser."""

from __future__ import annotations

import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

from remy_cli.common import FILE, examples, flag, option, print_status, time_unit_option
from remy_farm.analysis import live_network_page
from remy_farm.files import write_file
from remy_farm.remycc import RemyCC, read_remycc
from remy_farm.shipped import table_name

_HOST = "127.0.0.1"


@click.command(
    "play",
    epilog=examples(
        "remy-farm play",
        "remy-farm play design/remycc.json --out play.html",
    ),
)
@click.argument("tables", nargs=-1, type=FILE, metavar="[TABLE]...")
@option("--out -o FILE", "Write the page to a file instead of serving it.", FILE)
@option(
    "--port P",
    "Port of the page; by default a free one.",
    click.IntRange(0, 65535),
    default=0,
)
@flag("--no-browser", "Print the address without opening a browser.")
@time_unit_option
def command(
    tables: tuple[str, ...], out: str | None, port: int, no_browser: bool, time_unit_ms: float
) -> None:
    """Show RemyCCs and protocols that share a link, which can be changed while they run.

    TABLE is a RemyCC file (.json or .dna); more can be dropped onto the page. The page contains
    the simulator, loads nothing from the network, and is served to this machine only. --out writes
    it as a single file that can be opened or hosted. See docs/how-to/play.md.
    """
    page = live_network_page(named_remyccs(tables, time_unit_ms))
    if out is not None:
        write_file(out, page)
        click.echo(f"The page is in {out}.")
        return
    try:
        server = page_server(page, port)
    except OSError as error:
        raise click.UsageError(f"--port {port} cannot be used: {error.strerror}") from error
    with server:
        url = f"http://{_HOST}:{server.server_port}/"
        click.echo(f"The live network is at {url}")
        print_status("Press Ctrl-C to stop.")
        if not no_browser:
            webbrowser.open(url)
        server.serve_forever()


def named_remyccs(paths: tuple[str, ...], time_unit_ms: float = 1.0) -> dict[str, RemyCC]:
    """Reads RemyCCs and returns them by unique names.

    They are named as by `table_name`, with a number if there are several of a name.
    """
    remyccs: dict[str, RemyCC] = {}
    for path in paths:
        unit = 1.0 if path.endswith(".json") else time_unit_ms
        name = table_name(Path(path).resolve())
        number = 2
        unique = name
        while unique in remyccs:
            unique = f"{name} ({number})"
            number += 1
        remyccs[unique] = read_remycc(path, unit)
    return remyccs


def page_server(page: str, port: int) -> ThreadingHTTPServer:
    """Returns a server that serves only the page, at /, to this machine. Raises OSError."""
    body = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Another Host name means that another site's page sent the request (DNS rebinding).
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            if self.path != "/" or host not in (_HOST, "localhost"):
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            # The policy in the page's <meta> element cannot set frame-ancestors.
            self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Does not log requests."""

    return ThreadingHTTPServer((_HOST, port), Handler)
