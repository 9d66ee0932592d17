"""Public name for your own tests: the simulated web, `Web`."""

from __future__ import annotations

from bigcrawl.simweb.model.web import Web

__all__ = ["Web"]
