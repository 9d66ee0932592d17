"""Settings that all nodes of a crawl must have alike, for a promise that one of them does not keep is not kept.

Each node tells in its heartbeat what it has other than the defaults. A node that differs from one that lives and came
before it does not start, or ends when it hears of it: two that start at once see each other a second later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.default_settings import BY_NAME
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELD = "settings"
"""Of a report: name to value of each such setting that is not the default."""

SINCE = "since"
"""Of a report: when its node came, ms in the time of the crawls."""

BEATS = "beats"
"""Of a report: how many its node has sent."""


def difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """The first setting in which two nodes differ, and both values; "" for none."""
    for name in sorted({*mine, *theirs}):
        if mine.get(name) != theirs.get(name):
            default = f"{BY_NAME[name].default}, the default" if name in BY_NAME else "unset"
            return f"{name} is {mine.get(name, default)} here and {theirs.get(name, default)}"
    return ""


def refusal(node: str, different: str) -> ConfigError:
    """What a node that differs from another one ends with."""
    return ConfigError(
        f"{different} at node {node}, which is crawling: it must be the same on all nodes of a crawl; set it "
        "back here, or stop all nodes and start them with the new value"
    )


def came_before(theirs: Mapping[str, Any], node: str, mine: Mapping[str, Any], myself: str) -> bool:
    """Whether another node came before this one."""
    return (theirs.get(SINCE, 0), node) < (mine.get(SINCE, 0), myself)
