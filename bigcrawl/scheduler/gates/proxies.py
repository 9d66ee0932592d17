"""Which names a proxy resolves: all of them if a setting says so, or those that the environment sends through one.

Scrapy's HttpProxyMiddleware obeys `http_proxy`, `https_proxy` and `no_proxy`. A proxy resolves a host's name only if
both schemes go through one. The address of a host that is asked directly, even for one scheme only, must be known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import DnsConfig


def local_names(config: DnsConfig) -> Callable[[str], bool]:
    """Return a function that says whether this node resolves a host's name."""
    if config.is_proxys:
        return _none
    is_set = config.obeys_environment and {"http", "https"} <= getproxies().keys()
    return _bypasses if is_set else _all


def _all(host: str) -> bool:
    return True


def _none(host: str) -> bool:
    return False


def _bypasses(host: str) -> bool:
    return bool(proxy_bypass(host))
