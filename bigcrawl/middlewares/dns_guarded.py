"""The resolver that refuses the operator's own network, without the frontier.

    TWISTED_DNS_RESOLVER = "bigcrawl.middlewares.dns_guarded.GuardedResolver"

Where the frontier is, `Resolver` does the same by its rules. Here a host that resolves to a closed range has no
address: its requests fail as those to a name that does not exist, and the log says why. That goes for a proxy too.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.middlewares.dns import Resolver
from bigcrawl.politeness import addresses

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

logger = logging.getLogger(__name__)


class GuardedResolver(Resolver):
    """See the module."""

    _is_open = False
    _has_told = False

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> Self:
        resolver = super().from_crawler(crawler, reactor)
        resolver._is_open = crawler.settings.getbool("BIGCRAWL_ALLOW_PRIVATE_ADDRESSES")
        return resolver

    def _answer(self, receiver: Any, found: Sequence[str], port: int) -> None:
        reasons = [] if self._is_open else list(filter(None, map(addresses.refusal, found)))
        if reasons:
            self._tell(found, reasons[0])
        super()._answer(receiver, [] if reasons else list(found), port)

    def _tell(self, found: Sequence[str], reason: str) -> None:
        """Say it once aloud, and then as a detail."""
        logger.log(
            logging.DEBUG if self._has_told else logging.WARNING,
            "%(found)s is refused: %(reason)s; BIGCRAWL_ALLOW_PRIVATE_ADDRESSES opens it",
            {"found": ", ".join(found), "reason": reason},
        )
        self._has_told = True
