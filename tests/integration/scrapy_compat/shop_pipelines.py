"""The item pipelines of the tests' project: an async one that takes its time, and one that drops."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy.exceptions import DropItem


class SlowPipeline:
    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.02)
        return {**item, "piped": True}


class DroppingPipeline:
    def process_item(self, item: Any) -> Any:
        if item.get("unwanted"):
            raise DropItem("unwanted")
        return item
