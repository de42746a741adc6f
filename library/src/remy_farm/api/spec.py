"""Specifications of designs: networks, traffic, objective and search."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from remy_farm.analysis.wording import escape, preformatted
from remy_farm.files import write_file
from remy_farm.specification import content_digest, load_tree, spec_from_tree, to_yaml, vary
from remy_farm.specification.models import designed_tables
from remy_farm.specification.reading import Tree, read_yaml
from remy_proto.v1 import spec_pb2

_SOURCE = "the specification"


class Spec:
    """A checked specification, complete with its defaults. It is immutable.

    The keys are those of docs/reference/spec.md; their names include the units.
    """

    def __init__(self, tree: Mapping[str, Any] | None = None, /, **keys: Any) -> None:
        """Makes a specification, as in `Spec(name="mine", network={...})`.

        Relative file names, such as those of recordings, are resolved against the working
        directory.

        Args:
            tree: Keys and values as a dictionary.
            **keys: Further keys.

        Raises:
            SpecError: Keys are unknown or missing, or values are not allowed; the message lists
                them all.
            FileError: A file that the specification refers to cannot be read.
        """
        self._read(plain({**(tree or {}), **keys}), _SOURCE, Path.cwd())

    @classmethod
    def of_tree(cls, tree: Tree, source: str = _SOURCE, folder: Path | None = None) -> Spec:
        """Makes the specification of a tree that was read from `source`; files are in `folder`."""
        spec = cls.__new__(cls)
        spec._read(tree, source, folder or Path.cwd())
        return spec

    @classmethod
    def of_message(cls, message: spec_pb2.DesignSpec, source: str = _SOURCE) -> Spec:
        """Makes the specification of a message that has all defaults and was read from `source`."""
        spec = cls.__new__(cls)
        spec._tree = read_yaml(to_yaml(message), _SOURCE)
        spec._source, spec._folder = source, Path.cwd()
        spec._message = spec_pb2.DesignSpec()
        spec._message.CopyFrom(message)
        return spec

    def _read(self, tree: Tree, source: str, folder: Path) -> None:
        self._tree, self._source, self._folder = tree, source, folder
        self._message = spec_from_tree(tree, source, files=folder)

    @property
    def name(self) -> str:
        """Name of the design."""
        return self._message.name

    @property
    def seed(self) -> int:
        """Seed of all random draws of a design."""
        return self._message.search.seed

    @property
    def source(self) -> str:
        """Name of the specification in error messages, such as its file."""
        return self._source

    @property
    def folder(self) -> Path:
        """Folder against which relative file names are resolved."""
        return self._folder

    @property
    def tree(self) -> Tree:
        """The keys as they were given, without defaults."""
        return self._tree

    @property
    def designs(self) -> list[str]:
        """Names of the tables to design; several tables are designed together."""
        return [*designed_tables(self._message)]

    @property
    def digest(self) -> str:
        """SHA-256 of the specification's content, in hexadecimal."""
        return content_digest(self._message)

    @property
    def message(self) -> spec_pb2.DesignSpec:
        """A copy of the complete message."""
        copy = spec_pb2.DesignSpec()
        copy.CopyFrom(self._message)
        return copy

    def replace(self, settings: Mapping[str, Any] | None = None, /, **keys: Any) -> Spec:
        """Returns the specification with other values of some keys; derives its defaults again.

        Args:
            settings: Values by path, as in `{"objective.delta": 0.1}`.
            **keys: Values of top-level keys, as in `name="other"`.

        Raises:
            SpecError: A path does not exist, or a value is not allowed.
        """
        tree = self._tree
        for path, value in {**(settings or {}), **keys}.items():
            tree = vary(tree, path, plain(value), source=self._source)
        return Spec.of_tree(tree, self._source, self._folder)

    def to_yaml(self) -> str:
        """Returns the specification as YAML, with all defaults written out."""
        return to_yaml(self._message)

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys as a dictionary, with all defaults written out."""
        tree = read_yaml(self.to_yaml(), self._source)
        assert isinstance(tree, dict)
        return tree

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the specification as YAML, with all defaults written out. Raises FileError."""
        write_file(path, self.to_yaml())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self._message == other._message

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        tables = self.designs
        together = f", designs={tables}" if len(tables) > 1 else ""
        return f"Spec({self.name!r}, seed={self.seed}{together}, digest={self.digest[:12]!r})"

    def __str__(self) -> str:
        return self.to_yaml()

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.name)}</b></p>{preformatted(self.to_yaml())}"


def plain(value: Any) -> Any:
    """Converts a value to plain dictionaries, lists and numbers, from tuples and numpy scalars."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def load_spec(path: str | os.PathLike[str]) -> Spec:
    """Loads a specification from a YAML file, or from a JSON file named *.json.

    Args:
        path: The file. Relative file names in it are resolved against its folder.

    Returns:
        The specification, complete with its defaults.

    Raises:
        SpecError: Keys are unknown or missing, or values are not allowed; the message lists them
            all.
        FileError: The file, or a file that it refers to, cannot be read.
    """
    return Spec.of_tree(load_tree(path), os.fspath(path), Path(path).parent)
