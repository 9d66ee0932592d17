"""What a test's crawl logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

    import pytest


def of_bigcrawl(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return what the package logged, and not what Scrapy, asyncio or redis-py did."""
    return [record for record in caplog.records if record.name.partition(".")[0] == "bigcrawl"]
