"""Maps a host to its pay-level domain (PLD): the name somebody paid a registry for.

The PLD decides which partition a URL belongs to, and the public-suffix list decides the PLD, so every node of a crawl
must use the same copy of the list. The crawl record keeps that copy as `PublicSuffixes.text`, and a node that joins
builds its own from it with `from_text`. Nothing here opens a connection or leaves a file behind.
"""

from __future__ import annotations

from functools import cache, lru_cache
from io import BytesIO
from typing import Self

import requests
import tldextract
from requests.adapters import BaseAdapter
from tldextract.cache import DiskCache
from tldextract.suffix_list import get_suffix_lists

from bigcrawl.exceptions import ConfigError

HOSTS_CACHED_MAX = 100_000
"""Hosts whose PLDs are cached: about 20 MB. A look-up then takes 0.1 µs, otherwise 4 µs."""

# The line in the list that separates the registries' suffixes from those of companies (github.io).
_PRIVATE_PART = "// ===BEGIN PRIVATE DOMAINS==="


class PublicSuffixes:
    """A copy of the public-suffix list, and the PLDs it defines."""

    def __init__(self, text: bytes, extract: tldextract.TLDExtract, hosts_cached_max: int) -> None:
        self.text = text
        """The list, one suffix a line, sorted, so that equal lists have equal bytes. About 130 KB, 42 packed."""
        self._extract = extract
        self._cached = lru_cache(hosts_cached_max)(self._look_up)

    def __repr__(self) -> str:
        return f"PublicSuffixes({len(self.text)} bytes, {self._cached.cache_info().currsize} hosts cached)"

    @classmethod
    def bundled(cls, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        """Return the list of the installed tldextract.

        Args:
            private: whether suffixes of companies count too, so that each github.io site is a PLD.
            hosts_cached_max: how many hosts' PLDs to cache.
        """
        return cls.from_text(_bundled_text(), private=private, hosts_cached_max=hosts_cached_max)

    @classmethod
    def from_text(cls, text: bytes, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        """Return a list made from the text of another one, or from a file of publicsuffix.org.

        Raises:
            ConfigError: the text contains no suffixes.
        """
        return cls(text, _parsed(text, private=private), hosts_cached_max)

    def pld(self, host: str) -> str:
        """Return the PLD of a host, in the spelling that `host_of` returns.

        IP literals, single labels and public suffixes are their own PLD. A suffix missing from the list counts as one
        label, which is the list's own rule: `a.b.internal` belongs to `b.internal`.
        """
        return self._cached(host)

    def _look_up(self, host: str) -> str:
        if ":" in host or "." not in host or host.rpartition(".")[2].isdigit():
            return host  # in a canonical URL, only IPv4 literals have a last label of digits
        found = self._extract.extract_str(host)
        if found.suffix:
            return found.top_domain_under_public_suffix or host
        return ".".join(host.rsplit(".", 2)[-2:])


class _TextAdapter(BaseAdapter):
    """Passes a list in memory to tldextract, which only reads from URLs.

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
        """Do nothing; there is nothing to close."""


@cache
def _bundled_text() -> bytes:
    # Not by extractors, which make a tree of the list, twice: a tenth of a crawl's start.
    found = get_suffix_lists(DiskCache(None), (), None, fallback_to_snapshot=True)
    registries, companies = map(set, found)
    companies -= registries
    return "\n".join([*sorted(registries), _PRIVATE_PART, *sorted(companies), ""]).encode()


@lru_cache(2)
def _parsed(text: bytes, *, private: bool) -> tldextract.TLDExtract:
    """Parse a list. The crawls of a process usually share one."""
    extract = _extractor(private=private, url=_TextAdapter.URL)
    with requests.Session() as session:
        session.trust_env = False
        session.mount(_TextAdapter.URL, _TextAdapter(text))
        try:
            extract.extract_str("com", session=session)  # the first call loads the list
        except ValueError:
            raise ConfigError(f"a public-suffix list of {len(text)} bytes contains no suffix") from None
    return extract


def _extractor(*, private: bool, url: str) -> tldextract.TLDExtract:
    """Return an extractor that reads `url`, and keeps no cache."""
    return tldextract.TLDExtract(
        cache_dir=None,
        suffix_list_urls=(url,),
        fallback_to_snapshot=False,
        include_psl_private_domains=private,
    )
