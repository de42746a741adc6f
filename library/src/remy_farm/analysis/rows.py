"""Writes rows of named values as CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from remy_farm.files import FileError

if TYPE_CHECKING:
    import pyarrow

Value = str | int | float | bool | None
Row = Mapping[str, Value]
Columns = Mapping[str, tuple[type, Callable[[Any], Value]]]
"""Columns by name: the type of the values, and the function that computes the value of an entry.

The function returns None for an unknown value.
"""


def to_csv(columns: Columns, rows: Sequence[Row]) -> bytes:
    """Returns CSV: a header, and one line per row. Unknown values are empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def to_json(_: Columns, rows: Sequence[Row]) -> bytes:
    """Returns JSON: a list of objects. Unknown values are null."""
    return (json.dumps(list(rows), indent=2, allow_nan=False) + "\n").encode()


def arrow_table(columns: Columns, rows: Sequence[Row]) -> pyarrow.Table:
    """Returns an Arrow table with typed columns; unknown values are null. Raises ImportError."""
    # Imported here because it is large, optional, and used for nothing else.
    import pyarrow

    types = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        str: pyarrow.string(),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, (kind, _) in columns.items()])
    return pyarrow.Table.from_pylist(list(rows), schema=schema)


def to_parquet(columns: Columns, rows: Sequence[Row]) -> bytes:
    """Returns a Parquet file with typed columns; unknown values are null.

    Raises FileError if pyarrow is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise FileError(
            "Parquet needs pyarrow, which is not installed: pip install 'remy-farm[parquet]', or"
            " choose a name that ends in .csv or .json"
        ) from error
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(arrow_table(columns, rows), buffer)
    return buffer.getvalue()


#: Writers by the extension of the file name.
FORMATS: Mapping[str, Callable[[Columns, Sequence[Row]], bytes]] = {
    ".csv": to_csv,
    ".json": to_json,
    ".parquet": to_parquet,
}
