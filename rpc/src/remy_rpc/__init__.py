"""Code shared by coordinators and all processes that call them.

`settings` holds addresses, TLS files and tokens; `channel` opens a gRPC channel; `retry` is the
retry policy; `wire_format` is the version of the messages; `logs` and `tracing` set up logs and
traces.
"""
