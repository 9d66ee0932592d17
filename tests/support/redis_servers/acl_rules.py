"""The ACL rules that docs/operations.md states, as a user of Redis gets them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis

    from tests.support.redis_servers.redis_cluster import PrivateCluster
    from tests.support.redis_servers.redis_server import PrivateRedis

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


def rule_of(role: str) -> list[str]:
    """The words behind the name of the user `bigcrawl-<role>`."""
    found = re.search(rf"^user bigcrawl-{role} (.+?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/operations.md has no rule of a user bigcrawl-{role}"
    return found[1].split()


def make_user(server: PrivateRedis, role: str, crawl: str, *more: str) -> str:
    """Make the user that the page describes for a crawl, with `more` words; the URL with which it logs in."""
    _set_user(server.client, role, crawl, more)
    return server.url.replace("unix://", f"unix://{role}:secret@")


def make_cluster_user(cluster: PrivateCluster, role: str, crawl: str) -> str:
    """Make the user that the page describes for a cluster on each of its servers; the URL with which it logs in."""
    more = re.search(r"A Redis Cluster needs `([^`]+)` besides", PAGE.read_text("utf-8"))
    assert more is not None, "docs/operations.md does not say what a cluster needs besides"
    for server in cluster.masters + cluster.replicas:
        _set_user(server.client, role, crawl, more[1].split())
    return cluster.url.replace("redis://", f"redis://{role}:secret@")


def _set_user(client: redis.Redis, role: str, crawl: str, more: Sequence[str]) -> None:
    rule = [word.replace("NAME", crawl).replace("PASSWORD", "secret") for word in rule_of(role)]
    client.execute_command("ACL", "SETUSER", role, "reset", *rule, *more)
