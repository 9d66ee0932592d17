"""Access control of the dashboard.

Another site's page must not reach the dashboard through the operator's browser. So the Host header must name this
server, which defeats DNS rebinding. A change must be JSON, come from the page itself (Origin), and carry the token in a
header, which browsers never add to another site's request.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from bigcrawl.config import DashboardConfig

_BEARER = "bearer "


class HttpQuestion(NamedTuple):
    method: str
    has_data: bool
    host: str = ""
    origin: str = ""
    content_type: str = ""
    fetch_site: str = ""
    authorization: str = ""


class RefusedAccess(NamedTuple):
    status: int
    text: str


class AccessRules:
    def __init__(self, config: DashboardConfig) -> None:
        self._config = config

    def has_token(self, authorization: str) -> bool:
        """Return, in constant time, whether the Authorization header carries the token."""
        if self._config.token is None or authorization[: len(_BEARER)].lower() != _BEARER:
            return False
        given = authorization[len(_BEARER) :].strip().encode(errors="replace")
        return hmac.compare_digest(given, self._config.token.encode())

    def refusal(self, asked: HttpQuestion) -> RefusedAccess | None:
        if not self._is_our_host(asked.host):
            return RefusedAccess(
                403,
                "the Host header does not name this server; ask by its IP address or as localhost, or set "
                "BIGCRAWL_DASHBOARD_ORIGIN",
            )
        if asked.has_data and asked.fetch_site not in ("", "same-origin", "none"):
            return RefusedAccess(403, "another site's page asks; open the dashboard itself")
        if asked.method == "POST":
            return self._refusal_to_change(asked)
        if asked.has_data and self._config.is_guarded and not self.has_token(asked.authorization):
            return RefusedAccess(401, "the token is missing or wrong; enter that of BIGCRAWL_DASHBOARD_TOKEN")
        return None

    def _refusal_to_change(self, asked: HttpQuestion) -> RefusedAccess | None:
        if asked.content_type.partition(";")[0].strip().lower() != "application/json":
            return RefusedAccess(415, "a change is sent as JSON; set the header Content-Type: application/json")
        if asked.origin not in (f"http://{asked.host}", self._config.origin):
            return RefusedAccess(403, f"the Origin header must be the dashboard's own, http://{asked.host}")
        if self._config.token is None:
            return RefusedAccess(403, "nothing can be changed here; set BIGCRAWL_DASHBOARD_TOKEN or ..._TOKEN_FILE")
        if not self.has_token(asked.authorization):
            return RefusedAccess(401, "the token is missing or wrong; enter that of BIGCRAWL_DASHBOARD_TOKEN")
        return None

    def _is_our_host(self, host: str) -> bool:
        name = _name_of(host)
        if name is None:
            return False
        if self._config.origin is not None and name == urlsplit(self._config.origin).hostname:
            return True
        try:
            found, ours = ip_address(name), ip_address(self._config.address)
        except ValueError:
            return name == "localhost"
        return found.is_loopback or found == ours or ours.is_unspecified  # no DNS answer can change an address


def _name_of(host: str) -> str | None:
    try:
        split = urlsplit(f"//{host}")
        _ = split.port
    except ValueError:
        return None
    return split.hostname if split.netloc == host and "@" not in host else None
