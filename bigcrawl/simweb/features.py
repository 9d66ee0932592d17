"""Public names for your own tests: the features of a simulated web, `ALL`, and how its hosts are named, `Naming`."""

from __future__ import annotations

from bigcrawl.simweb.basics.features import ALL, Feature, Naming

__all__ = ["ALL", "Feature", "Naming"]
