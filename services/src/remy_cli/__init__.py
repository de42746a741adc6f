"""The command line `remy-farm`: files and flags in, tables and JSON out."""
