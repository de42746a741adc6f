"""The settings of `remy-farm coordinator`: flags, environment variables, and a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remy_services.cli.coordinator_options import evaluating, keeping, serving, watching
from remy_services.cli.coordinator_options.config_file import CONFIG
from remy_services.cli.coordinator_options.setting import VARIABLE_PREFIX

__all__ = ["VARIABLE_PREFIX", "coordinator_options"]


def coordinator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them."""
    themes = (serving, keeping, evaluating, watching)
    options = (CONFIG, *(option for theme in themes for option in theme.OPTIONS))
    for option in reversed(options):
        command = option(command)
    return command
