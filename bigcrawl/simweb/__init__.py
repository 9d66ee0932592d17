"""The simulated web under its first name, so that `bigcrawl.simweb.web` and `python -m bigcrawl.simweb` still work."""

from __future__ import annotations

import sys

import bigcrawl_simweb

sys.modules[__name__] = bigcrawl_simweb
