"""Settings of metrics and the dashboard."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bigcrawl.config.checks import checked, read_ports
from bigcrawl.config.shapes import DashboardConfig, MetricsConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.text_files.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping


TOKEN_CHARS_MIN = 16  # characters of the dashboard's token


def read_metrics(value: Mapping[str, Any]) -> MetricsConfig:
    address, ports = value["BIGCRAWL_METRICS_ADDRESS"], value["BIGCRAWL_METRICS_PORT"]
    return MetricsConfig(
        is_on=value["BIGCRAWL_METRICS"],
        address=str(checked("BIGCRAWL_METRICS_ADDRESS", address, ip_address, "127.0.0.1")),
        ports=checked("BIGCRAWL_METRICS_PORT", ports, read_ports, "9410, 9410-9429, or 0 for any"),
    )


def read_dashboard(value: Mapping[str, Any]) -> DashboardConfig:
    address, ports = value["BIGCRAWL_DASHBOARD_ADDRESS"], value["BIGCRAWL_DASHBOARD_PORT"]
    origin = value["BIGCRAWL_DASHBOARD_ORIGIN"] or None
    found = DashboardConfig(
        is_on=value["BIGCRAWL_DASHBOARD"],
        address=str(checked("BIGCRAWL_DASHBOARD_ADDRESS", address, ip_address, "127.0.0.1")),
        ports=checked("BIGCRAWL_DASHBOARD_PORT", ports, read_ports, "9430, 9430-9449, or 0 for any"),
        token=_token(value["BIGCRAWL_DASHBOARD_TOKEN"] or None, value["BIGCRAWL_DASHBOARD_TOKEN_FILE"] or None),
        origin=origin and checked("BIGCRAWL_DASHBOARD_ORIGIN", origin, _origin, "https://crawl.example.org"),
    )
    if found.is_guarded and found.token is None:
        where = "BIGCRAWL_DASHBOARD_ORIGIN" if found.origin else "BIGCRAWL_DASHBOARD_ADDRESS"
        raise ConfigError(
            f"{where} is {found.origin or found.address}, which others may reach: set BIGCRAWL_DASHBOARD_TOKEN_FILE to "
            f"a file with a token of at least {TOKEN_CHARS_MIN} characters, e.g. of `openssl rand -hex 16`"
        )
    return found


def _token(token: str | None, file: str | None) -> str | None:
    """Return the dashboard's token. No error message shows it."""
    name = "BIGCRAWL_DASHBOARD_TOKEN"
    if file is not None:
        if token is not None:
            raise ConfigError(f"{name} and {name}_FILE are both set; leave one out")
        name += "_FILE"
        try:
            token = read_text(Path(file)).strip()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name} is {file!r}, a file that cannot be read: {error}") from None
    if token is not None and re.fullmatch(rf"[!-~]{{{TOKEN_CHARS_MIN},1000}}", token) is None:
        raise ConfigError(
            f"the token of {name} has {len(token)} characters; must be at least {TOKEN_CHARS_MIN} letters, digits and "
            f"signs without blanks, e.g. of `openssl rand -hex 16`"
        )
    return token


def _origin(text: str) -> str:
    split = urlsplit(text)
    _ = split.port
    if split.scheme not in ("http", "https") or not split.hostname or f"{split.scheme}://{split.netloc}" != text:
        raise ValueError("it is not scheme://name or scheme://name:port")
    return text.lower()
