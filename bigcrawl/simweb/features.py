"""What a simulated web may have, for tests of your own: `ALL`, and how hosts are called, `Naming`."""

from __future__ import annotations

from bigcrawl.simweb.basics.features import ALL, Feature, Naming

__all__ = ["ALL", "Feature", "Naming"]
