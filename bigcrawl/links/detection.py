"""Detects undeclared encodings, and decodes pages that mix several Japanese encodings."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

from chardetng_py import detect
from w3lib.encoding import resolve_encoding

from bigcrawl.markup import WEB_ENCODINGS

DETECTED_BYTES_MAX: Final = 64 << 10
"""How much of a page is examined, in 7 ms."""
JAPANESE: Final = frozenset({"iso2022_jp", "euc_jp", "shift_jis", "cp932"})
RUNS_MAX: Final = 20_000
_ANY_OTHER: Final = "cp1252"  # the browsers' default for pages without a declaration
_TRIED: Final = ("utf-8", "euc_jp", "cp932")  # in this order: an earlier one rarely decodes text of a later one
_is_label = re.compile("[a-z]+").fullmatch
_find_shifted = re.compile(rb"\x1b\$[@B][\x21-\x7e]{2,4096}?\x1b\([BJ]").search
# A run: a text of ISO-2022-JP between escapes; or bytes, up to the first that is no part of a multi-byte character.
_find_runs = re.compile(
    rb"(?P<shifted>\x1b\$[@B](?:[\x21-\x7e]{0,4096}?\x1b\([BJ])?+)|[\x80-\xff][^\x00-\x3f]*+"
).finditer


def is_shifted(body: bytes) -> bool:
    return b"\x1b$" in body and _find_shifted(body) is not None


def detected(body: bytes, domain: str) -> str:
    """Return the codec that Firefox's detector finds; never UTF-8."""
    return _detected(body[:DETECTED_BYTES_MAX], domain)


@lru_cache(8)
def _detected(begin: bytes, domain: str) -> str:
    name = resolve_encoding(detect(begin, tld=domain.encode() if domain else None)) or ""
    return name if name in WEB_ENCODINGS else _ANY_OTHER


def top_level_domain(url: str) -> str:
    """Return the last label of a URL's host; empty if the label has anything but letters."""
    try:
        label = (urlsplit(url).hostname or "").rpartition(".")[2]
    except ValueError:
        return ""
    return label if _is_label(label) else ""


def text_in_japanese(body: bytes, name: str) -> str:
    """Decode a page whose runs of bytes may each be in a different Japanese encoding (002 §3.3.2)."""
    is_shifted = name == "iso2022_jp"
    if is_shifted or b"\x1b$" not in body:
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            pass
    parts = []
    at = 0
    for run in islice(_find_runs(body), RUNS_MAX):
        parts.append(body[at : run.start()].decode("ascii", "replace"))
        parts.append(_run(run, name))
        at = run.end()
    parts.append(body[at:].decode(name, "replace"))
    return "".join(parts)


def _run(run: re.Match[bytes], name: str) -> str:
    if run["shifted"] is not None:
        return run[0].decode("iso2022_jp", "replace")
    for tried in _TRIED:
        try:
            return run[0].decode(tried)
        except UnicodeDecodeError:
            pass
    return run[0].decode(name if name != "iso2022_jp" else _TRIED[-1], "replace")
