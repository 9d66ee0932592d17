"""A page is read once it has its answers and has used them, however slow its machine is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl_rendering.interface import Answered, RawPage
from bigcrawl_rendering.requirements import browser_path

if TYPE_CHECKING:
    from bigcrawl_rendering.interface import Asked, Rendered

pytestmark = pytest.mark.system

URL = "http://a.example/"
LATE_S = 1.0
"""Long after a page without requests would have been taken as still."""

WRITER = b"""<!doctype html><div id=app></div><script>
fetch("/word").then((answer) => answer.text()).then((word) => {
  document.getElementById("app").textContent = "written: " + word;
});
</script>"""


class OneWord:
    async def fetch(self, asked: Asked) -> Answered:
        return Answered(asked.url, 200, {"content-type": "text/plain"}, b"hello")


class LateDelivery:
    """A route whose answer is on its way into the page when the node takes it for delivered."""

    def __init__(self, route: Any) -> None:
        self.request = route.request
        self._route = route
        self._delivery: asyncio.Task[None] | None = None

    async def fulfill(self, **answer: Any) -> None:
        self._delivery = asyncio.create_task(self._deliver(answer))

    async def _deliver(self, answer: dict[str, Any]) -> None:
        await asyncio.sleep(LATE_S)
        await self._route.fulfill(**answer)


FLOOD = b"""<!doctype html><p>text</p><script>
const ask = async () => { for (;;) await Promise.all(Array.from({length: 50}, () => fetch("data:,x"))) };
ask();
</script>"""


def rendered(*, body: bytes = WRITER, asks_late: bool = False, gets_late: bool = False) -> Rendered:
    """Render a page whose browser and driver wait for a CPU before its request or its answer goes on."""
    from bigcrawl_rendering.browsers import Browsers  # Playwright may be missing elsewhere
    from bigcrawl_rendering.tab import Tab

    class SlowTab(Tab):
        async def _route(self, route: Any) -> None:
            is_word = route.request.url != URL
            await asyncio.sleep(LATE_S if is_word and asks_late else 0)
            await super()._route(LateDelivery(route) if is_word and gets_late else route)

    async def scenario() -> Rendered:
        pool = Browsers(browser_path(), 1, 1, 2_000_000_000, lambda _end: None)
        page = RawPage(URL, body, {"content-type": "text/html"})
        tab = SlowTab(page, OneWord(), active_s=600.0, total_s=600.0, steps_max=0)
        try:
            return await pool.run(lambda browser: tab.render(browser.shown, ""), alone=False)
        finally:
            await pool.close()

    return asyncio.run(scenario())


@pytest.mark.parametrize(("asks_late", "gets_late"), [(False, False), (True, False), (False, True)])
def test_what_a_page_asks_for_is_in_its_document(asks_late: bool, gets_late: bool) -> None:
    found = rendered(asks_late=asks_late, gets_late=gets_late)
    assert "written: hello" in found.html
    assert not found.is_cut


def test_requests_are_followed_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that asks without end is read as well, and the browser reports its further requests no more."""
    from bigcrawl_rendering import tab

    detached: list[Any] = []

    async def detach(session: Any) -> None:
        detached.append(session)
        await really(session)

    really = tab._detach
    monkeypatch.setattr(tab, "FOLLOWED_MAX", 50)
    monkeypatch.setattr(tab, "_detach", detach)
    assert "<p>text</p>" in rendered(body=FLOOD).html
    assert len(detached) == 1
