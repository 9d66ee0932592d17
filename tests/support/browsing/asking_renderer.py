"""A renderer without a browser: it asks for what a page lists, all at a time, and shows what it got as links."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from bigcrawl_rendering.interface import Asked, LoadRefusedError, PageSuspectError, Rendered

if TYPE_CHECKING:
    from bigcrawl_rendering.interface import Loads, RawPage


class AskingRenderer:
    """A page names its requests in `<!-- ask [[URL, kind], ...] -->`. One that says `dies` kills each browser."""

    @classmethod
    def from_crawler(cls, _crawler: Any) -> AskingRenderer:
        return cls()

    async def render(self, page: RawPage, loads: Loads, *, alone: bool = False) -> Rendered:
        text = page.body.decode()
        if "dies" in text:
            raise PageSuspectError("it dies")
        if "fails" in text:
            raise ValueError("it fails")
        found = re.search(r"<!-- ask (.*) -->", text)
        asked = json.loads(found[1]) if found else []
        answers = await asyncio.gather(*(self._ask(loads, *each) for each in asked))
        return Rendered(f"<body><p>{json.dumps(answers)}</p></body>", [f"{page.url}/found"], by="Asker 1")

    async def _ask(self, loads: Loads, url: str, kind: str) -> str:
        try:
            return (await loads.fetch(Asked(url, kind))).body.decode()
        except LoadRefusedError as error:
            return error.reason

    async def close(self) -> None:
        """Nothing is left."""
