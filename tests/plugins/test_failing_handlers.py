"""Real download handlers that fail in ways of their own: their errors are said once, and are no fault of a host."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from tests.plugins.conftest import Sides

PAGES: Final = 12  # more than BIGCRAWL_HOST_FAILURES_MAX
# Of curl's, and Scrapy's own where the handler's library is not installed.
HANDLERS: Final = {
    "scrapy_impersonate.ImpersonateDownloadHandler": "curl_cffi.requests.exceptions.ConnectionError",
    "scrapy_curl_cffi.handlers.CurlCffiDownloadHandler": "curl_cffi.requests.exceptions.ConnectionError",
    "scrapy_download_handlers_incubator.NiquestsDownloadHandler": "scrapy.exceptions.NotSupported",
}


@pytest.mark.parametrize("handler", HANDLERS)
def test_error_of_a_handler_is_logged_once_and_each_errback_gets_it(sides: Sides, handler: str) -> None:
    """Unchanged, for all URLs of a host, which is never retired; the log says its class once, and a count."""
    kind = HANDLERS[handler]
    settings = {"DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), handler)}
    _, ours = sides.pair("failing", settings)
    failed = [json.loads(item)["failed"] for item in ours.items]
    assert failed == [f"<class '{kind}'>"] * PAGES
    errors = [line.partition("] ERROR: ")[2] for line in ours.log.splitlines() if "[bigcrawl" in line]
    assert sum(f"raised {kind}: " in line for line in errors) == 1
    assert sum(f"{ours.stats['bigcrawl/handler_errors']} downloads failed by {kind}" in line for line in errors) == 1
