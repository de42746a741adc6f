"""What Docker runs in a worker's container: ends with 0 if the worker answers for its metrics."""

import os
import sys
import urllib.request

_, _, port = os.environ["REMY_FARM_WORKER_METRICS_LISTEN"].rpartition(":")
try:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5):
        pass
except OSError as error:
    sys.exit(f"No metrics at port {port}: {error}.")
