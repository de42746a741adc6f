"""`remy-farm ui`: the farm's page, for one user on this machine or for a team."""

from __future__ import annotations

import secrets
import webbrowser
from pathlib import Path
from typing import Any

import click

from remy_cli.common import option, say, switch
from remy_cli.connecting import (
    connection_settings,
    failures_of_the_service,
    taken,
    with_connection_options,
)
from remy_rpc.settings import SettingsError, parse_listen_address

_FILE = click.Path(dir_okay=False, path_type=Path)
_CODE_BYTES = 12


@click.command("ui")
@option(
    "--listen HOST:PORT",
    "Where to serve the page; port 0 is any that is free. Other hosts than this one are served "
    "with --page-cert only.",
    default="127.0.0.1:8080",
)
@option(
    "--host NAME",
    "A name that browsers know this server by, beside the one in --listen; may be repeated.",
    name="hosts",
    multiple=True,
)
@option(
    "--studies DIR",
    "A folder that `reproduce` or `league` wrote: its page is shown, too; may be repeated.",
    click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
)
@option("--page-cert FILE", "Certificate that the page is served with (PEM).", _FILE)
@option("--page-key FILE", "Its private key (PEM).", _FILE)
@switch("--plain", "Serve other hosts in plain text. Whoever is in between sees tokens.")
@switch("--no-browser", "Print the address and open no browser.")
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
    """Serve the farm's page: jobs as they run, in a browser.

    Whoever opens it signs in with a token of the coordinator, and may do there what the token
    allows. To this machine alone it can also be opened with your own token, by a code that is
    printed here; the token itself stays here. Where the coordinator asks for no token, nobody signs
    in. docs/how-to/ui.md says what is on the page.
    """
    with failures_of_the_service():
        coordinator = connection_settings(taken(connection))
        address = parse_listen_address(listen)
        if (page_cert is None) != (page_key is None):
            raise SettingsError("TLS of the page needs both --page-cert and --page-key")
        if not address.is_loopback and page_cert is None and not plain:
            raise SettingsError(
                f"--listen {listen} serves other hosts, which needs --page-cert and --page-key, or "
                "--plain where something in front of it speaks TLS"
            )
        code = None
        if address.is_loopback and coordinator.token is not None:
            code = secrets.token_urlsafe(_CODE_BYTES)
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
            say("Ctrl-C ends it.")
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
