"""`remy-farm play`: RemyCCs and protocols on a live network, in a browser."""

from __future__ import annotations

import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

from remy_cli.common import FILE, option, say, switch, time_unit_option
from remy_farm.analysis import live_network_page
from remy_farm.files import write_file
from remy_farm.remycc import RemyCC, read_remycc

_HOST = "127.0.0.1"


@click.command("play")
@click.argument("tables", nargs=-1, type=FILE, metavar="[TABLE]...")
@option("--out -o FILE", "Write the page to a file and serve nothing.", FILE)
@option(
    "--port P",
    "The port to serve at; a free one unless given.",
    click.IntRange(0, 65535),
    default=0,
)
@switch("--no-browser", "Print the address and open no browser.")
@time_unit_option
def command(
    tables: tuple[str, ...], out: str | None, port: int, no_browser: bool, time_unit_ms: float
) -> None:
    """See RemyCCs and protocols share a link, and change it while they do.

    TABLE is any RemyCC (.json, .dna); more can be dropped onto the page. The page holds the
    simulator itself, needs nothing from anywhere, and is served to this machine only; --out writes
    it as one file that can be opened or hosted as it is. docs/how-to/play.md says what can be done.
    """
    page = live_network_page(named_remyccs(tables, time_unit_ms))
    if out is not None:
        write_file(out, page)
        click.echo(f"The page is {out}.")
        return
    try:
        server = page_server(page, port)
    except OSError as error:
        raise click.UsageError(f"--port {port} cannot be served at: {error.strerror}") from error
    with server:
        url = f"http://{_HOST}:{server.server_port}/"
        click.echo(f"The live network is at {url}")
        say("Ctrl-C ends it.")
        if not no_browser:
            webbrowser.open(url)
        server.serve_forever()


def named_remyccs(paths: tuple[str, ...], time_unit_ms: float = 1.0) -> dict[str, RemyCC]:
    """The RemyCCs by names to tell them apart by.

    Those are the files', or their folders' where designs and examples call it remycc.json.
    """
    remyccs: dict[str, RemyCC] = {}
    for path in paths:
        unit = 1.0 if path.endswith(".json") else time_unit_ms
        place = Path(path).resolve()
        name = place.parent.name if place.stem == "remycc" else place.stem
        number = 2
        unique = name
        while unique in remyccs:
            unique = f"{name} ({number})"
            number += 1
        remyccs[unique] = read_remycc(path, unit)
    return remyccs


def page_server(page: str, port: int) -> ThreadingHTTPServer:
    """Serves the page at / to this machine, and nothing else. Raises OSError."""
    body = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Another name for this address is a page of somebody else's that asks.
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            if self.path != "/" or host not in (_HOST, "localhost"):
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            # Beside the policy that the page itself has, which cannot say this.
            self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Nobody asked who reads the page."""

    return ThreadingHTTPServer((_HOST, port), Handler)
