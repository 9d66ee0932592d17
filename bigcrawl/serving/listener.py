from __future__ import annotations

import asyncio
import logging
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.error import CannotListenError

if TYPE_CHECKING:
    from bigcrawl.serving.sites import QuietSite

logger = logging.getLogger(__name__)

RETRY_S: Final = 10.0  # wait for a port to become free, for instance that of an ending process


class Listener:
    """Serves a site at the first free port of a range, the first to the last of `ports`; 0 and 0 for any.

    While all are taken, it retries every `RETRY_S`. `name`, `setting` and the page's `path` are for the log.
    """

    def __init__(self, name: str, setting: str, address: str, ports: tuple[int, int], path: str) -> None:
        self._name, self._setting, self._path = name, setting, path
        self._address, self._ports = address, ports
        self._site: QuietSite | None = None
        self._port: Any | None = None
        self._again: asyncio.TimerHandle | None = None
        self.url: str | None = None

    def listen(self, site: QuietSite) -> None:
        try:
            self._port = self._first_free(site)
        except CannotListenError as error:
            if self._again is None:
                self._log_failure(error)
            self._again = asyncio.get_running_loop().call_later(RETRY_S, self.listen, site)
            return
        self._site = site
        found = ip_address(self._address)
        host = f"[{found}]" if found.version == 6 else str(found)
        self.url = f"http://{host}:{self._port.getHost().port}{self._path}"
        logger.info("%(name)s: %(url)s", {"name": self._name, "url": self.url})

    async def close(self) -> None:
        if self._again is not None:
            self._again.cancel()
        if self._port is not None and (stopping := self._port.stopListening()) is not None:
            await stopping.asFuture(asyncio.get_running_loop())
        if self._site is not None:
            self._site.close()

    def _first_free(self, site: QuietSite) -> Any:
        from twisted.internet import reactor as installed  # only after the crawl has chosen one

        reactor: Any = installed  # zope's interfaces are not known to mypy
        first, last = self._ports
        for port in range(first, last):
            try:
                return reactor.listenTCP(port, site, interface=self._address)
            except CannotListenError:
                continue
        return reactor.listenTCP(last, site, interface=self._address)

    def _log_failure(self, error: CannotListenError) -> None:
        logger.error(
            "%(name)s cannot be served yet: %(setting)s %(ports)s at %(address)s cannot be used (%(error)s); "
            "tried again every %(seconds)d s",
            {
                "name": self._name,
                "setting": self._setting,
                "ports": "-".join(map(str, dict.fromkeys(self._ports))),
                "address": self._address,
                "error": error.socketError,
                "seconds": RETRY_S,
            },
        )
