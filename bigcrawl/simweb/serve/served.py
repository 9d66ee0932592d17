"""What the server and the resolver ask of a web: anything that has this can be served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.simweb.basics.answer import Answer
    from bigcrawl.simweb.basics.name_fault import NameFault
    from bigcrawl.simweb.basics.name_record import NameRecord


class Served(Protocol):
    """A web: what its hosts answer, and where they are."""

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = ..., conditions: Mapping[str, str] = ...
    ) -> Answer:
        """What `host` answers to GET `target`.

        Args:
            host: a loopback address, of the web or not, or a lower-case name that `address_of` knows.
            target: path and query as sent; "*" too.
            port: the one that links to the same web carry.
            at_ms: when the request arrived, ms since the epoch.
            conditions: values of If-None-Match and If-Modified-Since, by these names.
        """
        ...

    def address_of(self, name: str) -> str | NameRecord | NameFault | None:
        """Where the host of this lower-case name is; None: there is no such name. Asked often."""
        ...
