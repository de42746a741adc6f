"""Small specifications and tables for tests of the library's public names."""

import remy_farm as rf
from remy_farm.remycc import RemyCC
from remy_simulator import RuleTable

NETWORK = {
    "rate_mbps": {"uniform": [10, 20]},
    "rtt_ms": 100,
    "senders": {"integer_uniform": [1, 2]},
    "measurement": {},
    "traffic": {"exponential_time": {"mean_ms": 500}, "mean_off_ms": 500},
}


def joint_spec(steps: int = 6) -> rf.Spec:
    """A joint search that takes a fraction of a second."""
    joint = {"steps": steps, "validation_specimens": 4}
    search = {"mode": "joint", "specimens": 16, "simulated_seconds": 1, "joint": joint}
    return rf.Spec(name="small", network=NETWORK, search=search)


def paper_spec() -> rf.Spec:
    """The paper's search with coarse steps. It does not end by itself within a test."""
    grid = {"first_step": 1, "steps": 1}
    paper = {
        "validation_specimens": 4,
        "window_increment": grid,
        "window_multiple": {"first_step": 0.3, "steps": 1},
        "intersend_ms": grid,
    }
    search = {"mode": "paper", "specimens": 16, "simulated_seconds": 1, "paper": paper}
    return rf.Spec(name="small", network=NETWORK, search=search, stop={"epochs": 100})


def small_table() -> rf.Table:
    """Eight rules with equal actions, from one rule that is split on each of three signals."""
    table = RuleTable([0, 1, 2], [([], (0.9, 4.0, 1.5))]).split(0, [(0, 2.0), (1, 3.0), (2, 1.25)])
    return rf.Table(RemyCC(table), "tiny")
