"""Whether anybody listens at an address."""

from __future__ import annotations

import socket

from remy_services.client.address import Address
from remy_services.client.diagnosis.finding import Check, Finding, ok, problem

_CHECK_ADDRESS = "check --coordinator, REMY_FARM_COORDINATOR and the configuration file"


def check_address(address: Address, *, timeout_seconds: float) -> Finding:
    """Connects and hangs up."""
    try:
        with socket.create_connection(
            (address.host, address.port), timeout=timeout_seconds
        ) as found:
            peer = found.getpeername()[0]
    except socket.gaierror:
        return problem(Check.ADDRESS, f"the name {address.host} is not known", _CHECK_ADDRESS)
    except ConnectionRefusedError:
        return problem(
            Check.ADDRESS,
            f"nobody listens at {address}",
            f"start the coordinator there ('remy-farm coordinator'), or {_CHECK_ADDRESS}",
        )
    except TimeoutError:
        return problem(
            Check.ADDRESS,
            f"{address} does not answer within {timeout_seconds:g} s",
            f"look for a firewall in between, or {_CHECK_ADDRESS}",
        )
    except OSError as error:
        return problem(Check.ADDRESS, f"{address}: {error.strerror or error}", _CHECK_ADDRESS)
    shown = "" if peer == address.host else f" ({peer})"
    return ok(Check.ADDRESS, f"something listens at {address}{shown}")
