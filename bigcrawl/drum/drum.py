"""The annex `bigcrawl_drum` under its first name: `bigcrawl.drum.drum.Drum` goes on working."""

from __future__ import annotations

import sys

from bigcrawl_drum import drum

sys.modules[__name__] = drum
