"""Studies of papers as data: what they ran, what they found, and whether it comes out here."""
