"""From a host to its pay-level domain (PLD): the name somebody paid a registry for.

The public-suffix list decides it, so it decides which partition a URL belongs to: every node of a crawl
must use the same copy. `PublicSuffixes.text` is that copy as the crawl record keeps it; a node that
joins makes its own from it with `from_text`. Nothing here opens a connection or leaves a file behind.
"""

from __future__ import annotations

from functools import cache, lru_cache
from io import BytesIO
from typing import Self

import requests
import tldextract
from requests.adapters import BaseAdapter

from bigcrawl.exceptions import ConfigError

HOSTS_CACHED_MAX = 100_000
"""Hosts whose PLD is remembered: about 20 MB; a look-up is 0.1 µs then, and 4 µs otherwise."""

# The line that separates the registries' suffixes from those of companies (github.io) in the list.
_PRIVATE_PART = "// ===BEGIN PRIVATE DOMAINS==="


class PublicSuffixes:
    """One copy of the public-suffix list, and the PLDs it gives."""

    def __init__(self, text: bytes, extract: tldextract.TLDExtract, hosts_cached_max: int) -> None:
        self.text = text
        """The list, one suffix a line, sorted: equal lists are equal bytes. About 130 KB, 42 packed."""
        self._extract = extract
        self._cached = lru_cache(hosts_cached_max)(self._look_up)

    def __repr__(self) -> str:
        return f"PublicSuffixes({len(self.text)} bytes, {self._cached.cache_info().currsize} hosts cached)"

    @classmethod
    def bundled(cls, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        """Return the list that came with the installed tldextract.

        Args:
            private: whether suffixes of companies count too, so that each github.io site is a PLD.
            hosts_cached_max: how many hosts' PLDs to remember.
        """
        return cls.from_text(_bundled_text(), private=private, hosts_cached_max=hosts_cached_max)

    @classmethod
    def from_text(cls, text: bytes, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        """Return a list made from the text of another one, or from a file of publicsuffix.org.

        Raises:
            ConfigError: the text holds no suffixes.
        """
        return cls(text, _parsed(text, private=private), hosts_cached_max)

    def pld(self, host: str) -> str:
        """Return the PLD of a host as `host_of` gives it, in the same spelling.

        IP literals and single labels are their own PLD, and so is a host that is a public suffix
        itself. A suffix that the list does not have counts as one label, which is the list's own rule:
        `a.b.internal` belongs to `b.internal`.
        """
        return self._cached(host)

    def _look_up(self, host: str) -> str:
        if ":" in host or "." not in host or host.rpartition(".")[2].isdigit():
            return host  # in a canonical URL a last label of digits only occurs in IPv4 literals
        found = self._extract.extract_str(host)
        if found.suffix:
            return found.top_domain_under_public_suffix or host
        return ".".join(host.rsplit(".", 2)[-2:])


class _TextAdapter(BaseAdapter):
    """Hands a list that is in memory to tldextract, which only reads from URLs.

    From a file it would guess the encoding, and nodes must not depend on a guess.
    """

    URL = "bigcrawl:public-suffixes"

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self._text = text

    def send(self, request: requests.PreparedRequest, *_args: object, **_kwargs: object) -> requests.Response:
        response = requests.Response()
        response.status_code = 200
        response.url = self.URL
        response.encoding = "utf-8"
        response.raw = BytesIO(self._text)
        return response

    def close(self) -> None:
        """Nothing is open."""


@cache
def _bundled_text() -> bytes:
    registries = set(_extractor(private=False).tlds)
    companies = set(_extractor(private=True).tlds) - registries
    return "\n".join([*sorted(registries), _PRIVATE_PART, *sorted(companies), ""]).encode()


@lru_cache(2)
def _parsed(text: bytes, *, private: bool) -> tldextract.TLDExtract:
    """Parse a list; the crawls of a process mostly share one."""
    extract = _extractor(private=private, url=_TextAdapter.URL)
    with requests.Session() as session:
        session.trust_env = False
        session.mount(_TextAdapter.URL, _TextAdapter(text))
        try:
            extract.extract_str("com", session=session)  # the first call is the one that loads
        except ValueError:
            raise ConfigError(f"a public-suffix list of {len(text)} bytes holds no suffix") from None
    return extract


def _extractor(*, private: bool, url: str | None = None) -> tldextract.TLDExtract:
    """Return an extractor that reads `url`, or the bundled list, and keeps no cache."""
    return tldextract.TLDExtract(
        cache_dir=None,
        suffix_list_urls=(url,) if url else (),
        fallback_to_snapshot=url is None,
        include_psl_private_domains=private,
    )
