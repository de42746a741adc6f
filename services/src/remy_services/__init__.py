"""remy-farm: specifications, the designer, evaluators, stores and the command line."""
