"""Docker's health check of a worker: exits with 0 if its metrics endpoint responds."""

import os
import sys
import urllib.request

_, _, port = os.environ["REMY_FARM_WORKER_METRICS_LISTEN"].rpartition(":")
try:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5):
        pass
except OSError as error:
    sys.exit(f"The metrics endpoint at port {port} does not respond: {error}.")
