"""Evaluation workers, which run the simulator for a coordinator."""
