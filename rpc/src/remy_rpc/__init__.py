"""What every process that calls a coordinator, or is one, has to agree on.

`settings` says where a coordinator is and how both sides know each other, `channel` opens a gRPC
channel to it, `retry` decides when to call again, `logs` and `tracing` say what happened.
"""
