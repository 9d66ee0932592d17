"""The interface of a web for the server and the resolver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl_simweb.basics.answer import Answer
    from bigcrawl_simweb.basics.name_record import NameFault, NameRecord


class ServedWeb(Protocol):
    """A web that can be served."""

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = ..., conditions: Mapping[str, str] = ...
    ) -> Answer:
        """Return the answer of `host` to GET `target`.

        Args:
            host: any loopback address, or a lower-case name that `address_of` knows.
            target: path and query as sent, or "*".
            port: for links to the same web.
            at_ms: arrival of the request, ms since the epoch.
            conditions: values of If-None-Match and If-Modified-Since, by these names.
        """
        ...

    def address_of(self, name: str) -> str | NameRecord | NameFault | None:
        """Return the address of the host with this lower-case name; None if it does not exist. Called often."""
        ...
