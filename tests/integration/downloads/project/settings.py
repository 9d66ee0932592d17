"""The project's settings: those of the run, as JSON in the environment."""

from __future__ import annotations

import json
import os

BOT_NAME = "conform"
SPIDER_MODULES = ["tests.integration.downloads.project.spider"]
globals().update(json.loads(os.environ["DOWNLOADS_SETTINGS"]))
