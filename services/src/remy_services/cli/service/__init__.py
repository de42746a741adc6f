"""The commands that talk to a coordinator."""

import os

# gRPC writes to standard error by itself, where a failure is to be one sentence. It reads this when
# it is imported, which is after this line.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
