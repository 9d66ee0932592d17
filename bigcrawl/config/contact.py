"""The operator's contact, which is sent to servers: a web page or mail address in BIGCRAWL_CONTACT or USER_AGENT.

Placeholders such as example.com do not count.
"""

from __future__ import annotations

import re
from typing import Final

_URL = re.compile(r"https?://([^\s/?#;,()<>\"'\\]+)[^\s;,()<>\"'\\]*", re.IGNORECASE)
_MAIL = re.compile(r"[\w.%+-]+@((?:[\w-]+\.)+[\w-]+)", re.ASCII)
# Also covers all names below these.
_NOBODYS: Final = (
    *("example.com", "example.net", "example.org", "scrapy.org", "yourdomain.com"),
    *("example", "invalid", "localhost", "test"),
)


def find_contact(text: str) -> str:
    """Return the first web page or mail address that is not a placeholder; "" if there is none."""
    found = [*_MAIL.finditer(text), *_URL.finditer(text)]
    return next(
        (match[0] for match in sorted(found, key=lambda match: match.start()) if _is_allowed_domain(match[1])), ""
    )


def find_mail(*texts: str) -> str:
    """Return the first mail address that is not a placeholder; "" if there is none."""
    return next((match[0] for text in texts for match in _MAIL.finditer(text) if _is_allowed_domain(match[1])), "")


def user_agent_with(user_agent: str, contact: str, default: str) -> str:
    """Return the user agent with the contact appended; `default` replaces Scrapy's own user agent."""
    if not contact or contact in user_agent:
        return user_agent
    return f"{default if user_agent.startswith('Scrapy/') else user_agent} (+{contact})"


def _is_allowed_domain(authority: str) -> bool:
    host = authority.rpartition("@")[2].partition(":")[0].rstrip(".").lower()
    return "." in host and not any(host == name or host.endswith(f".{name}") for name in _NOBODYS)
