"""The annex under its first name, so that `python -m bigcrawl.sampling` still works."""

from __future__ import annotations

import sys

import bigcrawl_sampling

sys.modules[__name__] = bigcrawl_sampling
