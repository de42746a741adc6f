"""Base classes of results: rows that convert to data frames, and plots."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remy_farm.analysis import wording
from remy_farm.analysis.rows import FORMATS, Columns, Row, arrow_table
from remy_farm.analysis.wording import number, plural
from remy_farm.files import FileError, write_file

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure


# Maximum number of rows that are printed.
_MAX_SHOWN = 20


def _shown(value: Any) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)


class Rows:
    """A table of results with named columns; the names include the units."""

    def __init__(self, columns: Columns, rows: Sequence[Row]) -> None:
        self._columns = columns
        self._rows = rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [*self._columns]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return "\n".join([*wording.aligned(self.columns, self._cells()), self._rest()]).rstrip()

    def _repr_html_(self) -> str:
        rest = self._rest()
        table = wording.table(plural(len(self), "row"), self.columns, self._cells())
        return table + (wording.paragraph(rest) if rest else "")

    def _cells(self) -> list[list[str]]:
        return [[_shown(row.get(name)) for name in self.columns] for row in self._rows[:_MAX_SHOWN]]

    def _rest(self) -> str:
        rest = len(self) - _MAX_SHOWN
        return f"... and {rest} more" if rest > 0 else ""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns each row as a dictionary; unknown values are None."""
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a data frame. Raises ImportError if pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "a data frame needs pandas, which is not installed: pip install 'remy-farm[pandas]'"
            ) from error
        frame = pandas.DataFrame.from_records([*self._rows], columns=self.columns)
        numbers = {name: "float64" for name, (kind, _) in self._columns.items() if kind is float}
        return frame.astype(numbers)

    def to_arrow(self) -> pyarrow.Table:
        """Returns the rows as an Arrow table. Raises ImportError if pyarrow is not installed."""
        try:
            return arrow_table(self._columns, self._rows)
        except ImportError as error:
            raise ImportError(
                "an Arrow table needs pyarrow, which is not installed: "
                "pip install 'remy-farm[parquet]'"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a .csv, .json or .parquet file, depending on the extension. Raises FileError."""
        write = FORMATS.get(Path(path).suffix.lower())
        if write is None:
            raise FileError(f"{os.fspath(path)} must be a name that ends in {', '.join(FORMATS)}")
        write_file(path, write(self._columns, self._rows))


class Tabular(ABC):
    """Base class of results that can be converted to rows."""

    @abstractmethod
    def rows(self) -> Rows:
        """Returns the result as rows."""

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a data frame. Raises ImportError if pandas is not installed."""
        return self.rows().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """Returns the rows as an Arrow table. Raises ImportError if pyarrow is not installed."""
        return self.rows().to_arrow()


def rows_of(kinds: Mapping[str, type], rows: Sequence[Row]) -> Rows:
    """Returns rows with the given types of values by column."""
    return Rows({name: (kind, itemgetter(name)) for name, kind in kinds.items()}, rows)


def rows_like(trees: Sequence[Mapping[str, Any]]) -> Rows:
    """Returns rows whose columns are the keys of dictionaries, with the types of their values."""
    names = dict.fromkeys(name for tree in trees for name in tree)
    kinds = {name: _kind(tree.get(name) for tree in trees) for name in names}
    texts = {name for name, kind in kinds.items() if kind is str}
    return rows_of(
        kinds,
        [
            {
                name: str(value) if name in texts and value is not None else value
                for name, value in tree.items()
            }
            for tree in trees
        ],
    )


def _kind(values: Iterable[Any]) -> type:
    """Returns the common type of the values: bool, int or float if all are, and otherwise str."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return int if kinds == {int} else float
    return kinds.pop() if len(kinds) == 1 else str


class Plot:
    """A plot that a notebook shows; `figure` is the matplotlib figure."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"Plot({width:g} x {height:g} inches)"

    def _repr_png_(self) -> bytes:
        from remy_farm.analysis.plots import to_png

        return to_png(self.figure)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plot in the format of the file's extension, such as .png, .svg or .pdf.

        Raises FileError.
        """
        kind = Path(path).suffix.lower().removeprefix(".")
        known = self.figure.canvas.get_supported_filetypes()
        if kind not in known:
            endings = ", ".join(f".{each}" for each in sorted(known))
            raise FileError(f"{os.fspath(path)} must be a name that ends in {endings}")
        if kind == "png":
            write_file(path, self._repr_png_())
            return
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format=kind)
        write_file(path, buffer.getvalue())
