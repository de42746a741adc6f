"""`remy-farm ui`: serves the farm's web page to this machine or to a team."""

from __future__ import annotations

import secrets
import webbrowser
from pathlib import Path
from typing import Any

import click

from remy_cli.common import flag, option, print_status
from remy_cli.connecting import (
    connection_settings,
    pop_connection_options,
    service_errors_exit,
    with_connection_options,
)
from remy_rpc.settings import SettingsError, parse_listen_address

_FILE = click.Path(dir_okay=False, path_type=Path)
_SIGN_IN_CODE_BYTES = 12


@click.command("ui")
@option(
    "--listen HOST:PORT",
    "Address of the page; port 0 selects a free port. Serving other hosts requires --page-cert "
    "or --plain.",
    default="127.0.0.1:8080",
)
@option(
    "--host NAME",
    "Additional host name that browsers may use for this server; may be given several times.",
    name="hosts",
    multiple=True,
)
@option(
    "--studies DIR",
    "Also show the pages in this directory, written by `reproduce` or `league`; may be given "
    "several times.",
    click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
)
@option("--page-cert FILE", "Certificate of the page's server (PEM).", _FILE)
@option("--page-key FILE", "Private key of --page-cert (PEM).", _FILE)
@flag("--plain", "Serve other hosts without TLS, which exposes tokens on the network.")
@flag("--no-browser", "Print the address without opening a browser.")
@with_connection_options
def command(
    listen: str,
    hosts: tuple[str, ...],
    studies: tuple[Path, ...],
    page_cert: Path | None,
    page_key: Path | None,
    plain: bool,
    no_browser: bool,
    **connection: Any,
) -> None:
    """Serve a web page that shows a farm's jobs and controls them.

    Users sign in with a coordinator token and can do what the token allows. If the page is served
    to this machine only, you can instead sign in with the code printed here, which uses your own
    token without sending it to the browser. If the coordinator requires no token, there is no
    sign-in. See docs/how-to/ui.md.
    """
    with service_errors_exit():
        coordinator = connection_settings(pop_connection_options(connection))
        address = parse_listen_address(listen)
        if (page_cert is None) != (page_key is None):
            raise SettingsError("TLS for the page needs both --page-cert and --page-key")
        if not address.is_loopback and page_cert is None and not plain:
            raise SettingsError(
                f"--listen {listen} serves other hosts, which needs --page-cert and --page-key, or "
                "--plain if a proxy in front of it provides TLS"
            )
        code = None
        if address.is_loopback and coordinator.token is not None:
            code = secrets.token_urlsafe(_SIGN_IN_CODE_BYTES)
        try:
            from remy_services.web import PageSettings, serve_page
        except ModuleNotFoundError as error:
            raise SettingsError(
                f"the page needs {error.name}, which is not installed: "
                "pip install 'remy-farm-services[ui]'"
            ) from error

        def announce(url: str) -> None:
            click.echo(f"The farm's page is at {url}")
            if code is not None:
                click.echo(f"To sign in as yourself, enter the code {code}")
            print_status("Press Ctrl-C to stop.")
            if not no_browser and address.is_loopback:
                webbrowser.open(url)

        serve_page(
            PageSettings(
                listen=address,
                coordinator=coordinator,
                hosts=hosts,
                studies=studies,
                tls_cert=page_cert,
                tls_key=page_key,
                code=code,
            ),
            announce,
        )
