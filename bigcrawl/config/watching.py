"""Settings of metrics and the dashboard."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_group import Group, parsed, setting

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN_CHARS_MIN = 16  # characters of the dashboard's token


def _parse_address(text: str) -> str:
    return str(ip_address(text))


def _parse_ports(text: str) -> tuple[int, int]:
    """Return the first and the last port of a range, or one port twice."""
    found = re.fullmatch(r"(\d{1,5})(?:\s*-\s*(\d{1,5}))?", text)
    if found is None:
        raise ValueError("it is neither a port nor a range")
    first, last = int(found[1]), int(found[2] or found[1])
    if not 0 <= first <= last < 65_536 or (first == 0 and last != 0):
        raise ValueError("ports must be from 1 to 65535, the first not above the last")
    return first, last


def _read_token(token: str | None, file: str | None) -> str | None:
    """Return the dashboard's token. No error message shows it."""
    name = "BIGCRAWL_DASHBOARD_TOKEN"
    if file is not None:
        if token is not None:
            raise ConfigError(f"{name} and {name}_FILE are both set; remove one of them")
        name += "_FILE"
        try:
            from bigcrawl.text_files.reading import read_text

            token = read_text(Path(file)).strip()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name} is {file!r}, a file that cannot be read: {error}") from None
    if token is not None and re.fullmatch(rf"[!-~]{{{TOKEN_CHARS_MIN},1000}}", token) is None:
        raise ConfigError(
            f"the token of {name} has {len(token)} characters; must be at least {TOKEN_CHARS_MIN} letters, digits "
            f"and signs without blanks, e.g. from `openssl rand -hex 16`"
        )
    return token


def _parse_origin(text: str | None) -> str | None:
    example = "https://crawl.example.org"
    return parsed("BIGCRAWL_DASHBOARD_ORIGIN", text, _checked_origin, example) if text else None


def _checked_origin(text: str) -> str:
    split = urlsplit(text)
    _ = split.port
    if split.scheme not in ("http", "https") or not split.hostname or f"{split.scheme}://{split.netloc}" != text:
        raise ValueError("it is not scheme://name or scheme://name:port")
    return text.lower()


def _parse_scrapyd(text: str | None) -> str | None:
    if not text:
        return None
    try:
        split = urlsplit(text)
        is_sound = split.scheme in ("http", "https") and bool(split.hostname) and (split.port or 1) > 0
    except ValueError:
        is_sound = False
    if not is_sound or split.query or split.fragment or not text.isprintable() or " " in text:
        raise ConfigError("BIGCRAWL_DASHBOARD_SCRAPYD is no URL of a server; must be like http://127.0.0.1:6800")
    return text


class MetricsConfig(Group):
    """Where metrics are served. `ports` are the first and last to try; 0 and 0 mean any."""

    is_on: bool = setting(
        "BIGCRAWL_METRICS",
        False,
        "Whether this node serves its metrics for Prometheus, at /metrics. Needs the extra `metrics`.",
        title="Nodes",
    )
    address: str = setting(
        "BIGCRAWL_METRICS_ADDRESS",
        "127.0.0.1",
        "IP address at which metrics are served. Whoever reaches it can read them: there is no password.",
        parse=(_parse_address, "127.0.0.1"),
    )
    ports: tuple[int, int] = setting(
        "BIGCRAWL_METRICS_PORT",
        "9410-9429",
        "Port at which metrics are served, or a range such as 9410-9429, of which the first free one is used. 0: any "
        "free port. The log says which it is.",
        parse=(_parse_ports, "9410, 9410-9429, or 0 for any"),
    )


class DashboardConfig(Group):
    """Where the dashboard is served.

    Attributes:
        ports: the first and last port to try; 0 and 0 mean any.
        token: is required for changes; None forbids all changes.
        origin: scheme, name and port of the reverse proxy, if there is one.
    """

    is_on: bool = setting(
        "BIGCRAWL_DASHBOARD",
        False,
        "Whether this node serves the dashboard. `scrapy frontier dashboard` serves it without a node.",
        title="Nodes",
    )
    address: str = setting(
        "BIGCRAWL_DASHBOARD_ADDRESS",
        "127.0.0.1",
        "IP address at which the dashboard is served. One that other machines reach needs a token.",
        parse=(_parse_address, "127.0.0.1"),
    )
    ports: tuple[int, int] = setting(
        "BIGCRAWL_DASHBOARD_PORT",
        "9430-9449",
        "Port at which the dashboard is served, or a range such as 9430-9449, of which the first free one is used. 0: "
        "any free port. The log says which it is.",
        parse=(_parse_ports, "9430, 9430-9449, or 0 for any"),
    )
    token: str | None = setting(
        "BIGCRAWL_DASHBOARD_TOKEN",
        None,
        "Secret that changes by the dashboard need, at least 16 characters, for instance of `openssl rand -hex 16`. "
        "Unset: nothing can be changed there.",
    )
    token_file: str | None = setting(
        "BIGCRAWL_DASHBOARD_TOKEN_FILE",
        None,
        "File that holds the token, and nothing else, instead of BIGCRAWL_DASHBOARD_TOKEN: command lines can be "
        "read by other users of the machine.",
    )
    origin: str | None = setting(
        "BIGCRAWL_DASHBOARD_ORIGIN",
        None,
        "Scheme, name and port under which a reverse proxy shows the dashboard, such as https://crawl.example.org. "
        "Looking needs the token then too.",
        read=_parse_origin,
    )

    scrapyd: str | None = setting(
        "BIGCRAWL_DASHBOARD_SCRAPYD",
        None,
        "URL of a scrapyd whose jobs are shown, such as http://127.0.0.1:6800; with user and password if it asks for "
        "them.",
        read=_parse_scrapyd,
    )

    __repr__ = object.__repr__  # which shows no token and no password

    @property
    def is_guarded(self) -> bool:
        """Return whether reading needs the token too, because other machines may reach the dashboard."""
        return self.origin is not None or not ip_address(self.address).is_loopback

    def derive(self, given: Mapping[str, Any]) -> Self:
        found = self.replace(token=_read_token(self.token, self.token_file))
        if found.is_guarded and found.token is None:
            where = "BIGCRAWL_DASHBOARD_ORIGIN" if found.origin else "BIGCRAWL_DASHBOARD_ADDRESS"
            raise ConfigError(
                f"{where} is {found.origin or found.address}, which other machines can reach: set "
                f"BIGCRAWL_DASHBOARD_TOKEN_FILE to a file with a token of at least {TOKEN_CHARS_MIN} characters, "
                "e.g. of `openssl rand -hex 16`"
            )
        return found
