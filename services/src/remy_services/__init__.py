"""Design service: coordinator, job state machine, stores, clients, telemetry and web page."""
