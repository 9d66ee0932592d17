"""Finds the line of robots.txt that decides about a URL, comparing octets as in RFC 9309 §2.2.2 and §2.2.3.

Both sides are first brought into one spelling, so that equivalent ones compare equal:

    %61 and other escapes of unreserved characters     the character itself
    %3A, %40, %2C and other reserved ones              the character itself: it delimits nothing in a path or query
    %2F, %3F in the path; %26, %3D, %2B; %23, %25      stay: decoded, they would be another URL
    %2F, %3F after the question mark                   the character itself (`?u=http://x` is `?u=http%3A%2F%2Fx`)
    * and $ in a URL                                   %2A and %24, which is how a pattern writes them
    characters not allowed in a URL                    escaped, byte by byte

In a pattern, `*` matches any octets and a final `$` matches the end; `$` elsewhere is literal. The longest matching
pattern decides, Allow on a tie. Without a match, a URL is allowed.

`STEPS_MAX` bounds the cost of a match. If it would cost more, any wildcard pattern that forbids something forbids the
URL. Genuine rules are far from this: 1,000 patterns with one star leave room for URLs of 900 octets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ALLOW, DISALLOW = "Allow: ", "Disallow: "

STEPS_MAX = 2_000_000
"""Octets of a URL times the pattern parts searched for in it: 5 ms, or 50 ms if both are hostile."""

SOUGHT_STEPS = 64

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ANYWHERE = _UNRESERVED | frozenset(b":@,;!'()[]")  # escaped or not, the meaning is the same
_IN_QUERY = _ANYWHERE | frozenset(b"/?")

_is_plain = re.compile(r"[A-Za-z0-9\-._~:@,;!'()\[\]/?&=+]*").fullmatch
_split_odd = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:@,;!'()\[\]/?&=+]")
_HEX = "0123456789ABCDEFabcdef"
_ESCAPES = {f"%{high}{low}": int(high + low, 16) for high in _HEX for low in _HEX}


def normalize_path(path: str, *, is_pattern: bool = False) -> str:
    """Return a path with its query in the spelling described above. A pattern keeps its `*`."""
    if _is_plain(path):
        return path
    before, mark, query = path.partition("?")
    kept = "*" if is_pattern else ""
    return _normalize(before, _BEFORE_QUERY, kept) + mark + _normalize(query, _BEHIND_MARK, kept)


def _escape_replacements(decoded: frozenset[int]) -> dict[str, str]:
    return {found: chr(octet) if octet in decoded else found.upper() for found, octet in _ESCAPES.items()}


_BEFORE_QUERY, _BEHIND_MARK = _escape_replacements(_ANYWHERE), _escape_replacements(_IN_QUERY)


def _normalize(text: str, escapes: dict[str, str], kept: str) -> str:
    def one(odd: re.Match[str]) -> str:
        found = odd[0]
        if found in escapes:
            return escapes[found]
        if found in ("%", kept):
            return found
        return "".join(f"%{octet:02X}" for octet in found.encode("utf-8", "surrogateescape"))

    return _split_odd.sub(one, text)


class _RuleLine(NamedTuple):
    text: str
    allows: bool
    octets: int
    parts: tuple[str, ...]
    is_anchored: bool

    def matches(self, path: str) -> bool:
        """Return whether the line's pattern matches a path from its start, each part where it first occurs."""
        first, *parts = self.parts
        if not path.startswith(first):
            return False
        at = len(first)
        last = parts.pop() if self.is_anchored and parts else None
        for part in parts:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        if last is not None:
            return path.endswith(last) and at <= len(path) - len(last)
        return not self.is_anchored or at == len(path)


class RobotsMatcher:
    __slots__ = ("_lengths", "_prefixes", "_sought", "_with_wildcards")

    def __init__(self, lines: Iterable[str]) -> None:
        read = [_parse_line(line) for line in lines]
        plain = [line for line in read if len(line.parts) == 1 and not line.is_anchored]
        plain.sort(key=_is_allow_line)  # of two equal patterns, the Allow stays
        self._prefixes = {line.parts[0]: line for line in plain}
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self._with_wildcards = [line for line in read if len(line.parts) > 1 or line.is_anchored]
        self._with_wildcards.sort(key=_precedence, reverse=True)
        self._sought = sum(len(line.parts) for line in self._with_wildcards)

    def deciding_line(self, path: str) -> str:
        """Return the line that decides about a path and its query; "" if none matches."""
        path = normalize_path(path)
        length = len(path)
        found: _RuleLine | None = None
        for octets in self._lengths:
            if octets <= length and (found := self._prefixes.get(path[:octets])) is not None:
                break
        if self._sought * (length + SOUGHT_STEPS) > STEPS_MAX:
            return self._decide_without_search(found)
        least = _precedence(found) if found else (0, False)
        for line in self._with_wildcards:
            if _precedence(line) < least:
                break
            if line.matches(path):
                return line.text
        return found.text if found else ""

    def _decide_without_search(self, found: _RuleLine | None) -> str:
        """Return the deciding line for a path on which searching for all wildcards would be too slow."""
        if found is not None and not found.allows:
            return found.text
        disallowing = (line.text for line in self._with_wildcards if not line.allows)
        return next(disallowing, found.text if found else "")

    def is_allowed(self, path: str) -> bool:
        return not self.deciding_line(path).startswith(DISALLOW)


def _is_allow_line(line: _RuleLine) -> bool:
    return line.allows


def _precedence(line: _RuleLine) -> tuple[int, bool]:
    return line.octets, line.allows


def _parse_line(line: str) -> _RuleLine:
    allows = line.startswith(ALLOW)
    pattern = line.removeprefix(ALLOW if allows else DISALLOW)
    is_anchored = pattern.endswith("$")
    text = normalize_path(pattern.removesuffix("$"), is_pattern=True)
    return _RuleLine(line, allows, len(text) + is_anchored, tuple(text.split("*")), is_anchored)
