"""The simulated web, for tests of your own: `Web`."""

from __future__ import annotations

from bigcrawl.simweb.model.web import Web

__all__ = ["Web"]
