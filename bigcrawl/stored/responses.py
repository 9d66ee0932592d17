from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.http import Headers

from bigcrawl.downloads.response_parts import parse_address, response_class

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    from scrapy.http import Response

    from bigcrawl.stored.pages import StoredPage


def response_of(page: StoredPage, url: str) -> Response:
    """Return the response for a page and URL. Certificate and the flag ``partial`` are not stored."""
    headers = Headers()
    dict.update(headers, page.headers)
    ip: IPv4Address | IPv6Address | None = None
    with suppress(ValueError):
        ip = parse_address(page.ip) if page.ip else None
    kind = response_class(headers, url, page.body)
    response = kind(
        url=url, status=page.status, body=page.body, flags=page.flags, ip_address=ip, protocol=page.protocol
    )
    response.headers = headers  # the constructor would copy them one by one
    return response
