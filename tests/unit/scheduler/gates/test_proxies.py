"""Whose business a name is, by the setting and by the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config
from bigcrawl.scheduler.gates.address_check import local_names

if TYPE_CHECKING:
    from collections.abc import Callable

PROXY = "http://proxy.example:3128"


def names(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, **settings: object) -> Callable[[str], bool]:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return local_names(read_config(settings).dns)


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({}, {}),
        ({"http_proxy": PROXY}, {}),
        ({"https_proxy": PROXY}, {}),
        ({"http_proxy": PROXY, "https_proxy": PROXY}, {"HTTPPROXY_ENABLED": False}),
    ],
)
def test_node_resolves_what_may_be_asked_directly(
    environment: dict[str, str], settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without proxies, with one for one scheme only, and where Scrapy is told not to look at the environment."""
    is_local = names(environment, monkeypatch, **settings)
    assert is_local("near.example")
    assert is_local("far.example")


def test_environment_names_proxies_for_all_but_some_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both schemes go through a proxy; the hosts of `no_proxy`, and what is below them, do not."""
    environment = {"http_proxy": PROXY, "https_proxy": PROXY, "no_proxy": "near.example,localhost"}
    is_local = names(environment, monkeypatch)
    for host in ("near.example", "www.near.example", "localhost"):
        assert is_local(host)
    for host in ("far.example", "nearer.example"):
        assert not is_local(host)


def test_setting_leaves_all_names_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says: middlewares choose."""
    is_local = names({"no_proxy": "*"}, monkeypatch, BIGCRAWL_DNS="proxy")
    assert not is_local("near.example")
