"""Ways in which a host's name may fail to resolve, other than by not existing."""

from __future__ import annotations

from enum import Enum


class NameFault(Enum):
    """What the resolver does instead of answering."""

    SERVFAIL = "servfail"  # it reports a failure
    SILENT = "silent"  # it sends nothing, and the client waits until its timeout
