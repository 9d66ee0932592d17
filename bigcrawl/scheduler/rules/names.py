"""The syntax for names of hosts, domains and URL patterns, shared by all rules set by hand."""

from __future__ import annotations

import re
from typing import Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.url.canonical import UrlError, canonicalize, host_of

URL_PATTERN: Final = "re:"
BELOW: Final = "*."
EVERY: Final = "*"
"""Every host; only budget rules use it."""

_HAS_NO_PLACE_IN_A_HOST = re.compile(r"[\s/?#@*\\]|^$")


def parse_name(name: str, where: str = "BIGCRAWL_BUDGET_RULES") -> str:
    """Return a rule's name in the form in which it is compared and stored: hosts in lower case, as A-labels."""
    if name.startswith(URL_PATTERN):
        try:
            re.compile(name.removeprefix(URL_PATTERN))
        except (re.error, OverflowError) as error:
            raise ConfigError(f"{where} has {name!r}, which is not a valid regular expression: {error}") from None
        return name
    prefix = BELOW if name.startswith(BELOW) else ""
    host = _parse_host(name.removeprefix(BELOW))
    if host is None or (prefix and _is_address(host)):
        raise ConfigError(
            f"{where} has {name!r}; must be a host (www.example.com), a pay-level domain (example.com), the hosts "
            f"below a name (*.example.com), or a pattern of URLs (re:/calendar/)"
        )
    return prefix + host


def _is_address(host: str) -> bool:
    return ":" in host or host.rpartition(".")[2].isdigit()


def _parse_host(written: str) -> str | None:
    if _HAS_NO_PLACE_IN_A_HOST.search(written):
        return None
    is_bare_ipv6 = written.count(":") > 1 and not written.startswith("[")
    try:
        canonical = canonicalize(f"http://[{written}]/" if is_bare_ipv6 else f"http://{written}/")
    except UrlError:
        return None
    has_port = not is_bare_ipv6 and ":" in written.rpartition("]")[2]
    return None if has_port else host_of(canonical)
