"""A resolver that protects the operator's own network, without the frontier.

    TWISTED_DNS_RESOLVER = "bigcrawl.middlewares.dns_guarded.GuardedResolver"

Requests to an address in a closed range fail as if the name did not exist, and the log says why. This applies to
proxies too.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.config import read_config
from bigcrawl.middlewares.dns import Resolver
from bigcrawl.politeness.addresses import AddressGuard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

logger = logging.getLogger(__name__)


class GuardedResolver(Resolver):
    _guard = AddressGuard(allow_private=False)
    _has_told = False

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> Self:
        resolver = super().from_crawler(crawler, reactor)
        politeness = read_config(crawler.settings).politeness
        resolver._guard = AddressGuard(politeness.allow_private_addresses, politeness.allow_addresses)
        return resolver

    def _pass_addresses(self, receiver: Any, found: Sequence[str], port: int) -> None:
        reason = self._guard.refusal(found)
        if reason:
            self._log_refusal(found, reason)
        super()._pass_addresses(receiver, [] if reason else list(found), port)

    def _log_refusal(self, found: Sequence[str], reason: str) -> None:
        logger.log(
            logging.DEBUG if self._has_told else logging.WARNING,
            "%(found)s is refused: %(reason)s; BIGCRAWL_ALLOW_PRIVATE_ADDRESSES allows it, "
            "BIGCRAWL_ALLOW_ADDRESSES some of the refused addresses",
            {"found": ", ".join(found), "reason": reason},
        )
        self._has_told = True
