"""Checks PNG files."""

import struct
import zlib


def assert_is_png(data: bytes) -> None:
    """Asserts that every chunk is complete with a valid checksum, and that no bytes follow."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, kinds = 8, []
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        body = data[position + 4 : position + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, position + 8 + length)
        assert zlib.crc32(body) == checksum
        kinds.append(body[:4])
        position += 12 + length
    assert (kinds[0], kinds[-1]) == (b"IHDR", b"IEND")
