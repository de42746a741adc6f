"""The command line, called within the process of a test."""

from services.tests.cli.conftest import run as run
from services.tests.cli.conftest import run_json as run_json
