"""Where the coordinator serves, to whom, and how it ends."""

from __future__ import annotations

import click

from remy_services.cli.coordinator_options.setting import FILE, Decorator, setting
from remy_services.cli.options import FiniteRange

OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--listen",
        default="127.0.0.1:50051",
        metavar="HOST:PORT",
        help="Where to serve; port 0 is any that is free. Other hosts than this one are served "
        "with TLS and tokens only.",
    ),
    setting(
        "--health-listen",
        metavar="HOST:PORT",
        help="Also serve health, and nothing else, there, in plain text.",
    ),
    setting(
        "--tokens-file",
        type=FILE,
        metavar="FILE",
        help="YAML file with those who may call, and what; read again when it changes.",
    ),
    setting("--tls-cert", type=FILE, metavar="FILE", help="Certificate of the server (PEM)."),
    setting("--tls-key", type=FILE, metavar="FILE", help="Its private key (PEM)."),
    setting(
        "--tls-client-ca",
        type=FILE,
        metavar="FILE",
        help="Only let in clients whose certificate one of these authorities signed (PEM).",
    ),
    setting(
        "--insecure",
        is_flag=True,
        help="Serve other hosts although TLS or tokens are missing.",
    ),
    setting(
        "--reflection/--no-reflection",
        default=True,
        help="Tell callers what services there are (gRPC reflection).",
    ),
    setting(
        "--maximum-message-bytes",
        type=click.IntRange(min=1 << 16),
        default=16 << 20,
        metavar="N",
        help="Size of any message.",
    ),
    setting(
        "--maximum-open-streams",
        type=click.IntRange(min=1),
        default=1000,
        metavar="N",
        help="Watches and transfers of jobs at once.",
    ),
    setting(
        "--grace-seconds",
        type=FiniteRange(min=0),
        default=20.0,
        metavar="S",
        help="When told to end (SIGTERM, Ctrl-C), do so within S seconds.",
    ),
    setting(
        "--ready-file",
        type=FILE,
        metavar="FILE",
        help="Write the address there when the coordinator serves.",
    ),
)
