"""Bearer tokens are sent with every call and never printed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remy_rpc.settings import SettingsError, Token, call_metadata, read_token_file


def test_token_file_is_read_at_every_call(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(" first\n")
    assert call_metadata(path) == (("authorization", "Bearer first"),)
    path.write_text("second")
    assert call_metadata(path) == (("authorization", "Bearer second"),)
    assert call_metadata(Token("third", "here")) == (("authorization", "Bearer third"),)
    assert call_metadata(None) == ()


@pytest.mark.parametrize("text", ["two words", "new\nline", "schlüssel", "nul\0", ""])
def test_invalid_token_is_rejected_without_showing_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "the-file"
    path.write_text(text)
    with pytest.raises(SettingsError, match="the-file") as refusal:
        read_token_file(path)
    assert not text or text not in str(refusal.value)


def test_unreadable_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"token file .*nowhere"):
        read_token_file(tmp_path / "nowhere")
    path = tmp_path / "endless"
    path.write_bytes(b"x" * 20_000)
    with pytest.raises(SettingsError, match="endless has more than 16384 bytes"):
        read_token_file(path)


def test_token_may_come_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SettingsError, match=r"token file .*pipe: a pipe that nobody writes to"):
        read_token_file(pipe)
    with ThreadPoolExecutor() as others:
        writer = others.submit(pipe.write_text, "secret\n")
        assert read_token_file(pipe).text == "secret"
        writer.result()


def test_token_is_never_printed() -> None:
    assert "secret" not in repr(Token("secret", "a file"))
