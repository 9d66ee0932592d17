from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request

PORTS: Final = {"http": 80, "https": 443}
_names_refusal = re.compile(r"\[\{'status': [3-9]\d\d,").search


class Proxy(NamedTuple):
    host: str
    port: int
    lines: tuple[bytes, ...]

    @classmethod
    def of(cls, request: Request) -> Self | None:
        written = request.meta.get("proxy")
        if not isinstance(written, str) or not written:
            return None
        try:
            split = urlsplit(written if "://" in written else f"http://{written}")
            host, port = split.hostname, split.port
        except ValueError:
            return None
        credentials = request.headers.getlist(b"Proxy-Authorization")
        lines = tuple(b"Proxy-Authorization: " + value for value in credentials)
        return cls(host, port or PORTS["http"], lines) if split.scheme == "http" and host else None


def refuses_tunnel(message: str) -> bool:
    """Return whether the message of Scrapy's tunnel error names a status with which the proxy refused the tunnel."""
    return _names_refusal(message) is not None
