"""RemyCCs outside of the simulator: as integers in C, and as congestion control of Linux."""
