"""remy-farm, the library: networks, RemyCCs, their search, simulation and analysis."""
