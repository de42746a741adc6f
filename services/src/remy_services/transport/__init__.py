"""How tasks reach workers: over gRPC, or on the actors of a Ray cluster."""
