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
"""By name: the type of its values, and what fills it of an entry, None where that is not known."""


def to_csv(columns: Columns, rows: Sequence[Row]) -> bytes:
    """A line of names and one for each row; what is not known is empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def to_json(_: Columns, rows: Sequence[Row]) -> bytes:
    """A list of objects; what is not known is null."""
    return (json.dumps(list(rows), indent=2, allow_nan=False) + "\n").encode()


def arrow_table(columns: Columns, rows: Sequence[Row]) -> pyarrow.Table:
    """An Arrow table with typed columns; what is not known is null. Raises ImportError."""
    # Large, and needed for nothing else.
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
    """A Parquet file with typed columns; what is not known is null. Raises FileError."""
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


#: By how the file's name ends.
FORMATS: Mapping[str, Callable[[Columns, Sequence[Row]], bytes]] = {
    ".csv": to_csv,
    ".json": to_json,
    ".parquet": to_parquet,
}
