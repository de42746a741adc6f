"""The life of a design job as a state machine: states, transitions, progress. Pure."""
