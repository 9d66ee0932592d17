from __future__ import annotations

from base64 import b32encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.warc.base32 import encode_sha1
from tests.support.running.tables import each


@given(st.binary(min_size=20, max_size=20))
def test_form_is_the_standard_one(digest: bytes) -> None:
    """What base64.b32encode gives for 20 bytes; these need no padding."""
    assert encode_sha1(digest) == b32encode(digest)


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0x80, 0xFF])
@each("place", range(20))
def test_every_byte_has_its_place(place: int, byte: int) -> None:
    """A single byte that differs changes the letters that hold its bits, wherever it stands."""
    digest = bytes(place) + bytes([byte]) + bytes(19 - place)
    assert encode_sha1(digest) == b32encode(digest)
