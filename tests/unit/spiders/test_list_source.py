"""Where scrapy-redis' settings say that the list is."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from bigcrawl.spiders.list_source import redis_url_of


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, None),
        ({"REDIS_PARAMS": {"socket_timeout": 3}}, None),
        ({"REDIS_URL": "rediss://u:p@r.example/2", "REDIS_HOST": "other"}, "rediss://u:p@r.example/2"),
        ({"REDIS_HOST": "r.example"}, "redis://r.example:6379/0"),
        ({"REDIS_PORT": 7000, "REDIS_DB": 3}, "redis://localhost:7000/3"),
        ({"REDIS_PARAMS": {"host": "a", "password": "p/w#@"}}, "redis://:p%2Fw%23%40@a:6379/0"),
        ({"REDIS_PARAMS": {"host": "a"}, "REDIS_HOST": "b"}, "redis://b:6379/0"),
        ({"REDIS_PARAMS": {"unix_socket_path": "/run/r.sock", "db": 2}}, "unix:///run/r.sock?db=2"),
    ],
)
def test_the_redis_is_the_one_that_scrapy_redis_uses(settings: dict[str, Any], url: str | None) -> None:
    """REDIS_URL before REDIS_HOST, PORT and DB, and these before REDIS_PARAMS; what is no address is left out."""
    assert redis_url_of(Settings(settings)) == url
