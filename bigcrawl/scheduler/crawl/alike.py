"""What must be the same on all nodes of a crawl, settings and release: a promise holds only if every node keeps it.

A node's heartbeat carries those of its settings that are not the defaults, and its version. A node that differs from a
live node that joined earlier does not start, or stops when it finds out. Two nodes that start at once see each other a
second later.

Nodes of one minor release read each other's messages, scripts and files; those of two may not. A node from before
heartbeats carried a version is one of the release 0.1, the only one there was. The version has a field of its own,
because those nodes would take it for a setting that they lack.
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

VERSION = "version"
"""Field of a report: the version of its node's bigcrawl."""

FIRST_RELEASE = "0.1"

SINCE = "since"
"""Field of a report: when its node joined, ms since 1970 on the crawls' clock."""

BEATS = "beats"
"""Field of a report: how many heartbeats its node has sent."""


def release_of(version: str) -> str:
    """Return the minor release of a version: "0.1" for "0.1.2" and "0.1.3.dev1+local"."""
    return ".".join(version.split(".")[:2])


def refusal(node: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> ConfigError | None:
    """Return the error that stops this node because it differs from another; None if they agree.

    Args:
        node: the other node.
        theirs: its report. One without settings is of a node that has not begun, and agrees.
        ours: the fields `VERSION` and `FIELD` of this node's reports.
    """
    if FIELD not in theirs:
        return None
    version, other = ours[VERSION], theirs.get(VERSION, FIRST_RELEASE)
    if release_of(version) != release_of(other):
        return ConfigError(
            f"bigcrawl is {version} here and {other} at node {node}, which is crawling: nodes of one minor release "
            f"work together; install {release_of(other)} here, or stop all nodes and start them with {version}"
        )
    spider, other_spider = ours[FIELD].get(SPIDER), theirs[FIELD].get(SPIDER)
    if spider and other_spider and spider != other_spider:  # its settings may differ for this reason only
        return ConfigError(
            f"{SPIDER} is {spider} here and {other_spider} at node {node}, which is crawling: one spider runs a crawl; "
            f"give {spider} a BIGCRAWL_CRAWL of its own"
        )
    if different := _difference(ours[FIELD], theirs[FIELD]):
        return ConfigError(
            f"{different} at node {node}, which is crawling: it must be the same on all nodes of a crawl; set it "
            "back here, or stop all nodes and start them with the new value"
        )
    return None


def _difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Describe the first setting in which two nodes differ, with both values; "" if they agree."""
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            default = f"{BY_NAME[name].default}, the default" if name in BY_NAME else "unset"
            return f"{name} is {ours.get(name, default)} here and {theirs.get(name, default)}"
    return ""


def joined_before(theirs: Mapping[str, Any], their_node: str, ours: Mapping[str, Any], our_node: str) -> bool:
    """Whether the node of report `theirs` joined before that of report `ours`."""
    return (theirs.get(SINCE, 0), their_node) < (ours.get(SINCE, 0), our_node)
