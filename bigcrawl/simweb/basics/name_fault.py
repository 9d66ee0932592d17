"""How the name of a host may fail to resolve, other than by not existing."""

from __future__ import annotations

from enum import Enum


class NameFault(Enum):
    """What the resolver does in place of an answer."""

    SERVFAIL = "servfail"  # it says that it failed
    SILENT = "silent"  # it says nothing: the client waits until its timeout
