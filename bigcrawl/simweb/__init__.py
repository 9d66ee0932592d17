"""The simulated web under its first name: `bigcrawl.simweb.web` and `python -m bigcrawl.simweb` go on working."""

from __future__ import annotations

import sys

import bigcrawl_simweb

sys.modules[__name__] = bigcrawl_simweb
