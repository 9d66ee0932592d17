"""Public name: the simulated web, `Web`."""

from __future__ import annotations

from bigcrawl_simweb.model.web import Web

__all__ = ["Web"]
