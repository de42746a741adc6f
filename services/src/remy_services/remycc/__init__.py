"""RemyCCs as files: the reference tool's .dna and our .json, and their rules for people to read."""

from remy_services.remycc.file import check_remycc_name, read_remycc, to_bytes, write_remycc
from remy_services.remycc.readable import ReadableRule, readable_rules
from remy_services.remycc.remycc import RemyCC, RemyCCError

__all__ = [
    "ReadableRule",
    "RemyCC",
    "RemyCCError",
    "check_remycc_name",
    "read_remycc",
    "readable_rules",
    "to_bytes",
    "write_remycc",
]
