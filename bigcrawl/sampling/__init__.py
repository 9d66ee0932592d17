"""The annex under its first name: `python -m bigcrawl.sampling` goes on working."""

from __future__ import annotations

import sys

import bigcrawl_sampling

sys.modules[__name__] = bigcrawl_sampling
