"""Fuzzes a reader of text, guided by coverage: `python -m services.fuzz json|yaml [OPTION...]`.

Options, and the folders of inputs to start from, are libFuzzer's. `make fuzz` gives both.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

# Instruments modules as they are imported.
with atheris.instrument_imports(include=["google.protobuf", "json", "remy_services", "yaml"]):
    from services.fuzz.readers import READERS, examples, words


def main() -> None:
    """Runs until libFuzzer's options say that it is enough, or an input is found that fails."""
    name = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        dictionary = Path(folder, "words")
        dictionary.write_text("".join(f'"{word}"\n' for word in words()), encoding="utf-8")
        seeds = Path(folder, "examples")
        seeds.mkdir()
        for number, example in enumerate(examples(name)):
            (seeds / str(number)).write_bytes(example)
        options = [f"-dict={dictionary}", *sys.argv[2:], str(seeds)]
        atheris.Setup([sys.argv[0], *options], READERS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
