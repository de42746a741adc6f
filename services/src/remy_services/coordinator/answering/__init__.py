"""How calls are refused, and how failures are kept from callers."""
