"""Wire formats as Python: messages (`v1`, `dna`), and what an absent field means (`completion`)."""
