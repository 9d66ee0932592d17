"""Public names: the features of a simulated web, `ALL`, and the naming of its hosts, `Naming`."""

from __future__ import annotations

from bigcrawl_simweb.basics.features import ALL, Feature, Naming

__all__ = ["ALL", "Feature", "Naming"]
