"""Settings that must be the same on all nodes of a crawl: a promise holds only if every node keeps it.

A node's heartbeat carries those of its settings that are not the defaults. A node that differs from a live node that
joined earlier does not start, or stops when it finds out. Two nodes that start at once see each other a second later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.default_settings import BY_NAME
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELD = "settings"
"""Field of a report: name to value of each such setting that is not the default."""

SPIDER = "the spider"
"""Among the settings: the name of the spider, which alone can run the crawl's stored requests."""

SINCE = "since"
"""Field of a report: when its node joined, ms since 1970 on the crawls' clock."""

BEATS = "beats"
"""Field of a report: how many heartbeats its node has sent."""


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Describe the first setting in which two nodes differ, with both values; "" if they agree."""
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            default = f"{BY_NAME[name].default}, the default" if name in BY_NAME else "unset"
            return f"{name} is {ours.get(name, default)} here and {theirs.get(name, default)}"
    return ""


def refusal(node: str, different: str) -> ConfigError:
    """Return the error that stops a node whose settings differ from another's."""
    return ConfigError(
        f"{different} at node {node}, which is crawling: it must be the same on all nodes of a crawl; set it "
        "back here, or stop all nodes and start them with the new value"
    )


def joined_before(theirs: Mapping[str, Any], their_node: str, ours: Mapping[str, Any], our_node: str) -> bool:
    """Whether the node of report `theirs` joined before that of report `ours`."""
    return (theirs.get(SINCE, 0), their_node) < (ours.get(SINCE, 0), our_node)
