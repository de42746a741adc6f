"""The laboratory: studies, the league, counter-examples, benchmarks of the search, the kernel."""
