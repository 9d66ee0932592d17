"""Decides which host names a proxy resolves: by a setting, or those for which both schemes use one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import DnsConfig


def local_names(config: DnsConfig) -> Callable[[str], bool]:
    if config.is_proxys:
        return _proxies_none
    is_set = config.obeys_environment and {"http", "https"} <= getproxies().keys()
    return _bypasses_proxy if is_set else _proxies_all


def _proxies_all(host: str) -> bool:
    return True


def _proxies_none(host: str) -> bool:
    return False


def _bypasses_proxy(host: str) -> bool:
    return bool(proxy_bypass(host))
