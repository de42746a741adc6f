"""What tables do and why: reports, plots, explanations, campaigns and benchmarks."""
