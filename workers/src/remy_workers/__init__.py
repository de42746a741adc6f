"""Evaluation workers: they answer evaluation requests with the simulator, and know no designer."""
