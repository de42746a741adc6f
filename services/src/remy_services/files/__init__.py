"""Reading bounded files, and writing files that are either complete or absent."""

from remy_services.files.atomic import write_file
from remy_services.files.bounded import read_file
from remy_services.files.errors import FileError

__all__ = ["FileError", "read_file", "write_file"]
