"""A stored crawl as a web: WARC files answer each URL.

A host has a loopback address of its own, or shares that of all hosts of its server; hosts of a simulated web have their
own again.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import BigcrawlError
from bigcrawl_simweb.basics.addresses import HOSTS_MAX, address_of, index_of
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.serve.sending import refusal_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bigcrawl.stored.answers import StoredAnswers

logger = logging.getLogger(__name__)

_HTTP_PORT, _HTTPS_PORT = 80, 443
# Of one connection, which is another one here, and of the framing.
_LEFT_OUT: Final = frozenset(
    {"connection", "content-length", "keep-alive", "proxy-connection", "trailer", "transfer-encoding", "upgrade"}
)
_NO_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({})
_REPORTS_MAX: Final = 20


class StoredWeb:
    """A web of stored answers.

    Args:
        pace: an answer waits for this multiple of the time that its fetch took.
    """

    def __init__(self, answers: StoredAnswers, pace: float = 1.0) -> None:
        self._answers = answers
        self._pace = pace
        self._unreadable = 0

    def __repr__(self) -> str:
        return f"StoredWeb({self._answers!r})"

    def addresses(self) -> Iterator[str]:
        seen: set[str] = set()
        for host, server in self._answers.servers():
            address = _invented_address(host, server)
            if address not in seen:
                seen.add(address)
                yield address

    def address_of(self, name: str) -> str | None:
        server = self._answers.server_of(name.strip("[]"))
        return None if server is None else _invented_address(name, server)

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] = _NO_CONDITIONS
    ) -> Answer:
        """Return the stored answer; 304 if the client has it; 404 if there is none."""
        for url in _possible_urls(host, port, target):
            try:
                page = self._answers.answer(url)
            except BigcrawlError as error:
                return self._unreadable_answer(error)
            if page is not None:
                headers = tuple(
                    (name, value.decode("latin-1"))
                    for name, values in ((name.decode("latin-1"), values) for name, values in page.headers.items())
                    if name.lower() not in _LEFT_OUT
                    for value in values
                )
                delay_ms = round(page.took_ms * self._pace)
                if page.status == 200 and _is_known(headers, conditions):
                    return Answer(304, headers, delay_ms=delay_ms, has_own_head=True)
                return Answer(page.status, headers, page.body, delay_ms, has_own_head=True)
        return refusal_answer(421 if self.address_of(host) is None else 404, ("X-Simweb", "not-stored"))

    def _unreadable_answer(self, error: BigcrawlError) -> Answer:
        self._unreadable += 1
        if self._unreadable <= _REPORTS_MAX:
            logger.error("%s; the server answers 500. `scrapy frontier warc verify` says what to do", error)
        return refusal_answer(500, ("X-Simweb", "unreadable"))


def _possible_urls(host: str, port: int, target: str) -> Iterator[str]:
    """Yield the URLs that a request may be for: a port speaks either HTTP or TLS."""
    if port == _HTTPS_PORT:
        yield f"https://{host}{target}"
        return
    yield f"http://{host}:{port}{target}"
    if port != _HTTP_PORT:
        yield f"https://{host}:{port}{target}"


def _invented_address(host: str, server: str) -> str:
    if index_of(server) is not None:
        return server
    digest = blake2b((server or host).encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return address_of(int.from_bytes(digest) % HOSTS_MAX)


def _is_known(headers: tuple[tuple[str, str], ...], conditions: Mapping[str, str]) -> bool:
    """Whether a client already has this answer. If-None-Match takes precedence (RFC 9110 §13.2.2)."""
    fields = {name.lower(): value for name, value in headers}
    tags = conditions.get("If-None-Match")
    if tags is not None:
        return fields.get("etag", "").removeprefix("W/") in {tag.strip().removeprefix("W/") for tag in tags.split(",")}
    since = conditions.get("If-Modified-Since")
    return since is not None and since == fields.get("last-modified")
