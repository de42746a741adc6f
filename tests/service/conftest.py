"""Provides fixtures that call the command line within the test's process."""

from services.tests.cli.conftest import run as run
from services.tests.cli.conftest import run_json as run_json
