"""Failures of name resolution."""

from __future__ import annotations

from enum import Enum


class NameFault(Enum):
    SERVFAIL = "servfail"  # it reports a failure
    SILENT = "silent"  # the client waits until its timeout
