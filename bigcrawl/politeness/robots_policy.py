"""Robots rules by RFC 9309: from the bytes of a robots.txt to a verdict that can be stored.

    lines -> groups -> the one group for us -> RobotsRules -> to_bytes (host record) -> from_bytes -> is_allowed

Groups are parsed here; paths are matched in robots_match.py. Existing parsers take `User-agent: big` to mean bigcrawl
too (the RFC wants the whole product token), treat `%3F` as a question mark, and allow `/` for an Allow of
`/index.html`. docs/robots.md says what is read where the RFC leaves a choice; besides:

- Only an Allow or Disallow line ends a list of User-agent lines (§2.2.4: other records must not interfere). So in
  `User-agent: * / Crawl-delay: 9 / User-agent: x / Disallow: /` the Disallow applies to both, as in Google's parser. If
  that was not meant, it forbids more, never less.
- Disallow may be misspelt in the common ways, and a colon may be missing. The longest of several Crawl-delays applies.
- Many servers send `max-age=0` with everything, so rules are kept for at least `KEPT_MS_MIN`.
"""

from __future__ import annotations

import math
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass, field
from typing import Self

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.politeness.backoff_policy import retry_backoff_ms
from bigcrawl.politeness.robots_match import DISALLOW, RobotsMatcher
from bigcrawl.url.canonical import UrlError, canonicalize

BODY_BYTES_MAX = 500 * 1024
"""The part of a robots.txt that must be read (RFC 9309 §2.5)."""

REDIRECTS_MAX = 5
"""Redirects that are followed (§2.3.1.2). After that, the file counts as absent."""

KEPT_MS = 24 * 3_600_000
KEPT_MS_MIN = 3_600_000

SITEMAPS_MAX = 200
"""Limit on the sitemaps of one robots.txt; sites with more have a sitemap index."""

SITEMAP_BYTES_MAX = 2_048
"""Longer values are not URLs, by the sitemaps protocol."""

CRAWL_DELAY_MS_MAX = 24 * 3_600_000
"""Longer delays are read as a day; the policy's own cap is far below."""

_FORMAT = b"\x01"
_UNPACKED_BYTES_MAX = 4 * BODY_BYTES_MAX  # escaping turns one byte into three

_DIRECTIVES = {
    **dict.fromkeys((b"user-agent", b"useragent", b"user agent"), "agent"),
    b"allow": "allow",
    **dict.fromkeys((b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"), "disallow"),
    **dict.fromkeys((b"crawl-delay", b"crawl delay", b"crawldelay"), "delay"),
    **dict.fromkeys((b"sitemap", b"site-map"), "sitemap"),
}
_match_token = re.compile(rb"[A-Za-z0-9_-]+|\*(?![^\t\v\f ])").match
_OCTETS = [chr(octet) if 0x20 < octet < 0x7F else f"%{octet:02X}" for octet in range(256)]
_find_product = re.compile(r"[A-Za-z0-9_-]+").search
_find_max_age = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE).search
_find_not_kept = re.compile(r"(?:^|[\s,])no-(?:cache|store)\b", re.IGNORECASE).search
_find_compatible = re.compile(r"\(compatible;\s*([A-Za-z0-9_-]+)").search


def robots_url(authority: str) -> str:
    return authority + "/robots.txt"


def agent_token(user_agent: str) -> str:
    """Return the product token by which robots.txt files name this crawler, in lower case.

    For `bigcrawl/0.1 (+http://example.com)` it is `bigcrawl`; for the browsers' form `Mozilla/5.0 (compatible;
    examplebot/1.0)` it is `examplebot`.

    Raises:
        ConfigError: the User-Agent contains no token.
    """
    found = _find_product(user_agent)
    if found is None:
        raise ConfigError(f"USER_AGENT is {user_agent!r}; it must begin with a name, e.g. 'examplebot/1.0'")
    named = _find_compatible(user_agent)
    return (named[1] if named and found[0].lower() == "mozilla" else found[0]).lower()


class RobotsRules:
    __slots__ = ("_lines", "_matcher", "crawl_delay_ms")

    def __init__(self, lines: tuple[str, ...] = (), crawl_delay_ms: int | None = None) -> None:
        """Take the rules as lines, `Allow: <pattern>` or `Disallow: <pattern>`, in ASCII and escaped like URLs."""
        self._lines = lines
        self._matcher: RobotsMatcher | None = None
        self.crawl_delay_ms = crawl_delay_ms
        """The site's delay between two fetches, not capped by a setting; None if it asks for none."""

    def __repr__(self) -> str:
        return f"RobotsRules({len(self._lines)} lines, crawl_delay_ms={self.crawl_delay_ms})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RobotsRules):
            return NotImplemented
        return (self._lines, self.crawl_delay_ms) == (other._lines, other.crawl_delay_ms)

    def __hash__(self) -> int:
        return hash((self._lines, self.crawl_delay_ms))

    @classmethod
    def parse(cls, body: bytes, agent_token: str) -> Self:
        """Parse a decompressed robots.txt of any quality: byte-order marks, UTF-16, line ends, HTML. Never raises."""
        return cls._of_groups(_parse_groups(_parse_records(body)), agent_token)

    @classmethod
    def _of_groups(cls, groups: list[_Group], agent_token: str) -> Self:
        ours, everybody = _Group(), _Group()
        named = False
        token = agent_token.lower().encode()
        for group in groups:
            if token in group.agents:
                named = True
                ours.add(group)
            elif b"*" in group.agents:
                everybody.add(group)
        chosen = ours if named else everybody
        return cls(tuple(chosen.lines), chosen.crawl_delay_ms)

    @classmethod
    def allow_all(cls) -> Self:
        return cls()

    @classmethod
    def forbid_all(cls) -> Self:
        return cls(("Disallow: /",))

    def is_allowed(self, url: str) -> bool:
        """Return whether a URL of this authority may be fetched. robots.txt itself may always be fetched."""
        return not self._lines or not self._deciding_line(url).startswith(DISALLOW)

    @property
    def lines(self) -> tuple[str, ...]:
        return self._lines

    @property
    def chars(self) -> int:
        """The length of all lines, nearly the rules' memory."""
        return sum(map(len, self._lines))

    def forbidding_line(self, url: str) -> str:
        line = self._deciding_line(url) if self._lines else ""
        return line if line.startswith(DISALLOW) else ""

    def _deciding_line(self, url: str) -> str:
        if self._matcher is None:
            self._matcher = RobotsMatcher(self._lines)
        path = _path_of(url)
        if path.startswith("/robots.txt") and path[11:12] in ("", "?"):
            return ""
        line = self._matcher.deciding_line(path)
        if "/." in path and not line.startswith(DISALLOW):
            # A URL is fetched as the spider spelled it, so the path without its dots is checked too.
            return self._matcher.deciding_line(_path_of(_without_dots(url)))
        return line

    def to_bytes(self) -> bytes:
        """Return the rules packed for the host record: 10 bytes if there are none, below 300 for most sites."""
        delay = "" if self.crawl_delay_ms is None else str(self.crawl_delay_ms)
        return _FORMAT + zlib.compress("\n".join((delay, *self._lines)).encode("ascii"))

    @classmethod
    def from_bytes(cls, packed: bytes) -> Self:
        if packed[:1] != _FORMAT:
            raise CorruptionError("robots rules", 0, _FORMAT, packed[:1])
        try:
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(packed[1:], _UNPACKED_BYTES_MAX).decode("ascii")
            delay, *lines = text.split("\n")
            crawl_delay_ms = int(delay) if delay else None
        except (zlib.error, ValueError) as error:
            raise CorruptionError("robots rules", 1, "packed lines", error) from error
        if not unpacker.eof or not all(line.startswith(("Allow: ", "Disallow: ")) for line in lines):
            raise CorruptionError("robots rules", 1, "whole Allow and Disallow lines", text[:80])
        return cls(tuple(lines), crawl_delay_ms)


def write_record(rules: RobotsRules, expires_ms: int) -> bytes:
    return b"%d\n%b" % (expires_ms, rules.to_bytes())


def read_record(value: bytes) -> tuple[RobotsRules, int]:
    """Return the rules in a host record's field, and their expiry in ms since the epoch."""
    expires_ms, _, packed = value.partition(b"\n")
    if not expires_ms.isdigit():
        raise CorruptionError("robots rules", 0, "a time in ms", value[:20])
    return RobotsRules.from_bytes(packed), int(expires_ms)


def _path_of(url: str) -> str:
    start = url.find("//") + 2
    rest = url[start:].partition("#")[0]
    slash, mark = rest.find("/"), rest.find("?")
    if slash >= 0 and not 0 <= mark < slash:
        return rest[slash:]
    return "/" + rest[mark:] if mark >= 0 else "/"


def _without_dots(url: str) -> str:
    try:
        return canonicalize(url, len(url) * 3 + 100)
    except UrlError:
        return url


@dataclass(slots=True)
class _Group:
    agents: set[bytes] = field(default_factory=set)
    lines: dict[str, None] = field(default_factory=dict)
    crawl_delay_ms: int | None = None
    has_rules: bool = False

    def add(self, other: _Group) -> None:
        self.lines |= other.lines
        self.ask_delay(other.crawl_delay_ms)

    def ask_delay(self, delay_ms: int | None) -> None:
        if delay_ms is not None:
            self.crawl_delay_ms = max(delay_ms, self.crawl_delay_ms or 0)


def _parse_groups(records: list[tuple[str, bytes]]) -> list[_Group]:
    """Return the groups of a file in order. Records before the first User-agent line apply to no robot."""
    groups: list[_Group] = [_Group()]
    for directive, value in records:
        group = groups[-1]
        if directive == "agent":
            if group.has_rules:
                group = _Group()
                groups.append(group)
            token = _match_token(value)
            if token:
                group.agents.add(token[0].lower())
        elif directive == "delay":
            group.ask_delay(_delay_ms(value))
        elif directive != "sitemap":
            group.has_rules = True
            # A pattern that starts with neither matches no path; an empty one forbids nothing.
            if value[:1] in (b"/", b"*"):
                group.lines[f"{directive.capitalize()}: {_escape_pattern(value)}"] = None
    return groups


def _parse_records(body: bytes) -> list[tuple[str, bytes]]:
    records = []
    for raw in _split_lines(body):
        line = raw.partition(b"#")[0].strip()
        name, _, value = line.partition(b":")
        directive = _DIRECTIVES.get(name.strip().lower())
        if directive is None:
            words = line.split()
            if len(words) != 2:  # more words are a sentence rather than a record without its colon
                continue
            directive = _DIRECTIVES.get(words[0].lower())
            value = words[1]
        if directive is not None:
            records.append((directive, value.strip()))
    return records


def _split_lines(body: bytes) -> list[bytes]:
    if len(body) > BODY_BYTES_MAX:
        body = body[:BODY_BYTES_MAX]
        # Half a pattern would forbid, or allow, more than the whole one.
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
    body = body.removeprefix(BOM_UTF8).replace(b"\0", b"")  # NULs: UTF-16 that lacks its mark
    return body.replace(b"\r", b"\n").split(b"\n")


def _escape_pattern(pattern: bytes) -> str:
    return "".join(map(_OCTETS.__getitem__, pattern))


def _delay_ms(value: bytes) -> int | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return round(min(seconds * 1_000, CRAWL_DELAY_MS_MAX))


def _sitemap_urls(records: list[tuple[str, bytes]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for directive, value in records:
        if directive == "sitemap" and 0 < len(value) <= SITEMAP_BYTES_MAX:
            found[value.decode("utf-8", "replace")] = None
            if len(found) == SITEMAPS_MAX:
                break
    return tuple(found)


def kept_ms(cache_control: str, age: str = "", *, least_ms: int = KEPT_MS_MIN) -> int:
    """Return how long to keep a robots.txt response (§2.4): a day, or less if its headers require it."""
    if _find_not_kept(cache_control):
        return min(least_ms, KEPT_MS)
    found = _find_max_age(cache_control)
    if found is None:
        return KEPT_MS
    spent_s = int(age) if age.isascii() and age.isdigit() and len(age) <= 10 else 0
    return min(max((int(found[1]) - spent_s) * 1_000, least_ms), KEPT_MS)


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    rules: RobotsRules
    expires_in_ms: int
    reason: str
    """What the response was: `rules`, `absent` (4xx), `redirects` (too many, or to nowhere) or `unreachable`."""

    sitemaps: tuple[str, ...] = ()
    """The sitemaps' URLs as written. Relative ones occur, though they should not."""


def verdict_on_response(
    status: int | None,
    body: bytes,
    agent_token: str,
    *,
    attempts: int = 0,
    jitter: float = 0.0,
    expires_in_ms: int = KEPT_MS,
) -> RobotsVerdict:
    """Return the verdict on a response to a request for robots.txt (RFC 9309 §2.3.1).

    `status` is None without a response. A 3xx means too many redirects, or a redirect to nowhere. `attempts` counts the
    fetches in a row, including this one, in which the file was unreachable.
    """
    if status is not None and 200 <= status < 300:
        records = _parse_records(body)
        rules = RobotsRules._of_groups(_parse_groups(records), agent_token)
        return RobotsVerdict(rules, expires_in_ms, "rules", _sitemap_urls(records))
    if status is not None and 300 <= status < 400:
        return RobotsVerdict(RobotsRules.allow_all(), expires_in_ms, "redirects")
    if status is not None and 400 <= status < 500 and status != 429:
        return RobotsVerdict(RobotsRules.allow_all(), expires_in_ms, "absent")
    return RobotsVerdict(RobotsRules.forbid_all(), retry_backoff_ms(attempts, jitter), "unreachable")
