"""Fuzzes a text parser, guided by coverage: `python -m library.fuzz json|yaml [OPTION...]`.

The remaining arguments are libFuzzer's options and input folders. `make fuzz` passes both.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

# Instruments modules as they are imported.
with atheris.instrument_imports(include=["google.protobuf", "json", "remy_services", "yaml"]):
    from library.fuzz.readers import READERS, dictionary_words, examples

# The folder is not temporary, because libFuzzer ends the process without returning.
_START = Path(__file__).resolve().parents[2] / "build" / "fuzz" / "start"


def main() -> None:
    """Runs until libFuzzer's limits are reached or an input fails."""
    name = sys.argv[1]
    start = _START / name
    (start / "examples").mkdir(parents=True, exist_ok=True)
    dictionary = start / "words"
    dictionary.write_text("".join(f'"{word}"\n' for word in dictionary_words()), encoding="utf-8")
    for number, example in enumerate(examples(name)):
        (start / "examples" / str(number)).write_bytes(example)
    options = [f"-dict={dictionary}", *sys.argv[2:], str(start / "examples")]
    atheris.Setup([sys.argv[0], *options], READERS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
