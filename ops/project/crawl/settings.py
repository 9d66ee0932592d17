"""Takes bigcrawl's settings from the environment: what begins with BIGCRAWL_ there is a setting here.

bigcrawl refuses a name or value that it does not know, so a typing error in the environment ends the start.
"""

from __future__ import annotations

import os

BOT_NAME = "bigcrawl"
SPIDER_MODULES = ["bigcrawl.spiders"]
ADDONS = {"bigcrawl.addon.Addon": 500}
USER_AGENT = "bigcrawl/0.1"  # BIGCRAWL_CONTACT is added to it

LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

globals().update({name: value for name, value in os.environ.items() if name.startswith("BIGCRAWL_")})
