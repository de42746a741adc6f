"""Every input that is kept for the fuzzers is refused or sound, and so are the examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from library.fuzz import readers

_CORPUS = Path(readers.__file__).with_name("corpus")
_KEPT = sorted(path for path in _CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", _KEPT, ids=lambda path: path.name)
def test_a_kept_input_is_refused_or_sound(path: Path) -> None:
    readers.READERS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", readers.READERS)
def test_the_examples_are_where_fuzzers_start(name: str) -> None:
    examples = list(readers.examples(name))
    assert len(examples) > len(list(_CORPUS.glob(f"{name}/least.*")))
    for example in examples:
        readers.READERS[name](example)


def test_a_corpus_has_a_reader() -> None:
    assert {path.parent.name for path in _KEPT} == set(readers.READERS)
