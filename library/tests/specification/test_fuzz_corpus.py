"""Runs the fuzzers' checks on their corpus and on the examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from library.fuzz import readers

_CORPUS = Path(readers.__file__).with_name("corpus")
_INPUTS = sorted(path for path in _CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", _INPUTS, ids=lambda path: path.name)
def test_each_corpus_input_is_refused_or_valid(path: Path) -> None:
    readers.READERS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", readers.READERS)
def test_the_fuzzers_start_from_valid_examples(name: str) -> None:
    examples = list(readers.examples(name))
    assert len(examples) > len(list(_CORPUS.glob(f"{name}/least.*")))
    for example in examples:
        readers.READERS[name](example)


def test_each_corpus_folder_has_a_reader() -> None:
    assert {path.parent.name for path in _INPUTS} == set(readers.READERS)
