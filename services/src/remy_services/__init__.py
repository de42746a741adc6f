"""The farm as a service: clients, jobs, stores, the coordinator and what watches it."""
