"""`scrapy frontier dashboard`. It also runs a stopped embedded Redis; a crawl that starts takes that over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy.utils.reactor import install_reactor
from twisted.internet.defer import Deferred

from bigcrawl.commands.result import Result
from bigcrawl.commands.running import data_of_action
from bigcrawl.exceptions import ConfigError
from bigcrawl.views.opened_crawl import open_crawl, server_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def dashboard(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Serve the dashboard until Ctrl-C or SIGTERM; the first line has its address."""
    with server_of(config) as server:
        asyncio.run(_require_crawl(config, server))
        served = config.replace(crawl=config.crawl.replace(redis_url=server))
        _serve_until_signal(served)
    return Result({"served": True}, "the dashboard has ended; the crawl continues")


async def _require_crawl(config: Config, server: str) -> None:
    async with open_crawl(config, server):
        pass


def _serve_until_signal(config: Config) -> None:
    install_reactor(_REACTOR)
    from twisted.internet import reactor as installed

    from bigcrawl.dashboard.face import DashboardSite, listener_of

    reactor: Any = installed  # mypy does not know zope's interfaces
    site, listener = DashboardSite(config, data_of_action), listener_of(config)

    def begin() -> None:
        site.start()
        listener.listen(site)
        if listener.url is None:
            reactor.stop()
        else:
            print(f"dashboard: {listener.url}; Ctrl-C ends it", flush=True)

    async def end() -> None:
        await listener.close()
        await site.stop()

    reactor.callLater(0, begin)  # once asyncio's loop runs
    reactor.addSystemEventTrigger("before", "shutdown", lambda: Deferred.fromFuture(asyncio.ensure_future(end())))
    reactor.run()
    if listener.url is None:
        ports = "-".join(map(str, dict.fromkeys(config.dashboard.ports)))
        where = f"BIGCRAWL_DASHBOARD_PORT {ports} at {config.dashboard.address}"
        raise ConfigError(
            f"{where} cannot be used; end the program that uses it, or set another port with -s (0 for any free one)"
        )
