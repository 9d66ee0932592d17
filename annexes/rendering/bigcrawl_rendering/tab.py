"""One page in a browser: its requests go to the node, and it is scrolled, pressed and looked at within its bounds."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error as PlaywrightError

from bigcrawl_rendering.interface import Asked, LoadRefusedError, PageSuspectError, Rendered

if TYPE_CHECKING:
    from bigcrawl_rendering.interface import Loads, RawPage

WATCH: Final = (files("bigcrawl_rendering") / "script" / "watch.js").read_text("utf-8")
HTML_CHARS_MAX: Final = 8 << 20
LINKS_MAX: Final = 20_000
TICK_S: Final = 0.1
LAST_S: Final = 5.0
LAST_SHARE: Final = 0.25
"""How long a page may take to hand over its document, and a context to close: that, or this share of the page's time
if it is longer. A page that takes longer hangs."""

QUIET_MS: Final = 2_000
QUIETS_MAX: Final = 3
WIDTH, HEIGHT = 1280, 1600
_KINDS: Final = {"other": "fetch", "manifest": "manifest"}
_AWAITED: Final = frozenset({"Document", "Script", "Stylesheet", "XHR", "Fetch"})
"""Types of requests whose answers make or change the document, as Chromium names them."""
FOLLOWED_MAX: Final = 1_000
"""Requests of a page that are followed in the browser. Each, of any type, costs the node 0.4 ms."""
_NOT_SHOWN: Final = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "set-cookie", "refresh", "link"}
)


class Tab:
    """A page in a browser; `active_s` bounds its time without waits for answers, `total_s` all of it."""

    def __init__(self, page: RawPage, loads: Loads, *, active_s: float, total_s: float, steps_max: int) -> None:
        self._raw = page
        self._loads = loads
        self._active_s = active_s
        self._total_s = total_s
        self._last_s = max(LAST_S, LAST_SHARE * active_s)
        self._steps_max = steps_max
        self._page: Any = None
        self._is_shown = False
        self._waiting = 0
        self._loader = ""
        self._loading: set[str] = set()
        self._followed = 0
        self._unfollow: asyncio.Future[None] | None = None
        self._answered = asyncio.Event()
        self._gone_to: dict[str, None] = {}
        self._rendered = Rendered("")
        self._has_document = False

    async def render(self, browser: Any, agent: str) -> Rendered:
        context = await browser.new_context(
            user_agent=agent or None,
            service_workers="block",
            accept_downloads=False,
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        try:
            return await self._render_in(context)
        finally:
            await self._close(context)

    async def _render_in(self, context: Any) -> Rendered:
        await context.add_init_script(WATCH)
        await context.route("**/*", self._route)
        await context.route_web_socket("**/*", _close_socket)
        self._page = page = await context.new_page()
        await self._watch_requests(await context.new_cdp_session(page))
        context.on("page", self._close_popup)
        page.on("dialog", _dismiss)
        crashed = asyncio.Event()
        page.on("crash", lambda *_: crashed.set())
        work = asyncio.ensure_future(self._explore())
        clock = asyncio.ensure_future(self._use_up_time())
        crash = asyncio.ensure_future(crashed.wait())
        try:
            await asyncio.wait({work, clock, crash}, return_when=asyncio.FIRST_COMPLETED)
            if crash.done():
                raise PageSuspectError("its process died")
            if work.done():
                work.result()
            else:
                self._rendered.is_cut = True
        finally:
            await _cancel(work, clock, crash)
        if self._rendered.is_cut:
            await self._read_document()
        if not self._has_document:
            raise PageSuspectError("the browser returns no document", hangs=True)
        links = dict.fromkeys([*self._gone_to, *self._rendered.links])
        links.pop(self._raw.url, None)
        self._rendered.links = list(links)[:LINKS_MAX]
        return self._rendered

    async def _explore(self) -> None:
        await self._page.goto(self._raw.url, wait_until="commit", timeout=0)
        await self._settle()
        await self._read_document()
        if self._steps_max:
            await self._reveal_more()
            await self._look_at_views()

    async def _reveal_more(self) -> None:
        """Scroll and press buttons for more content while that shows new links on the same page."""
        page, address = self._page, self._page.url
        links = await page.evaluate("__bigcrawl.collect()")
        is_pressing = False
        for _ in range(self._steps_max):
            moved = await page.evaluate("__bigcrawl.press()" if is_pressing else "__bigcrawl.scroll()")
            if moved:
                await self._settle()
            found = await page.evaluate("__bigcrawl.collect()") if moved else links
            if page.url.partition("#")[0] != address.partition("#")[0]:
                return  # a route of an application: its address is a link, and its document another page's
            if found > links:
                links = found
                await self._read_document()
            elif not is_pressing:
                is_pressing = True
            elif moved:
                await page.evaluate("__bigcrawl.giveUp()")
            else:
                return

    async def _look_at_views(self) -> None:
        """Collect the links of the views that the page shows for fragments such as #/about."""
        looked: set[str] = set()
        while len(looked) < self._steps_max:
            views = [view for view in await self._page.evaluate("__bigcrawl.views(1000)") if view not in looked]
            if not views:
                break
            looked.add(views[0])
            await self._page.evaluate("view => { location.hash = view }", views[0])
            await self._settle()
            await self._page.evaluate("__bigcrawl.collect()")
        if looked:
            found = await self._page.evaluate("__bigcrawl.written(0)")
            self._rendered.links = list(dict.fromkeys([*self._rendered.links, *found["links"]]))

    async def _settle(self) -> None:
        """Wait until the page has its answers and stops changing."""
        loud = 0
        while loud < QUIETS_MAX:
            while self._is_loading():
                self._answered.clear()
                await self._answered.wait()
            is_quiet = await self._page.evaluate("ms => __bigcrawl.quiet(ms)", QUIET_MS)
            if not self._is_loading():
                if is_quiet:
                    return
                loud += 1

    def _is_loading(self) -> bool:
        return self._waiting > 0 or bool(self._loading)

    async def _read_document(self) -> None:
        try:
            async with asyncio.timeout(self._last_s):
                found = await self._page.evaluate("most => __bigcrawl.written(most)", HTML_CHARS_MAX)
        except TimeoutError:
            raise PageSuspectError("it hangs", hangs=True) from None
        self._rendered.html, self._rendered.links = found["html"], found["links"]
        self._has_document = True

    async def _use_up_time(self) -> None:
        """Return when the page's time is over."""
        loop = asyncio.get_running_loop()
        began, active_s = loop.time(), 0.0
        while active_s < self._active_s and loop.time() - began < self._total_s:
            since = loop.time()
            await asyncio.sleep(TICK_S)
            if not self._waiting:
                active_s += loop.time() - since

    # --- requests

    async def _watch_requests(self, session: Any) -> None:
        """Learn from the page itself when its requests begin, and when their answers have reached it.

        A request may be on its way to the node while the node waits for nothing, and an answer on its way to the page.
        """
        session.on("Network.requestWillBeSent", partial(self._record_begin, session))
        session.on("Network.loadingFinished", self._record_end)
        session.on("Network.loadingFailed", self._record_end)
        await session.send("Network.enable")

    def _record_begin(self, session: Any, event: dict[str, Any]) -> None:
        """Record a request of the document, whose own request is the first. Frames and workers have other loaders."""
        self._followed += 1
        if self._followed >= FOLLOWED_MAX:
            self._loading.clear()
            self._answered.set()
            self._unfollow = self._unfollow or asyncio.ensure_future(_detach(session))
            return
        self._loader = self._loader or event["loaderId"]
        if event["loaderId"] == self._loader and event["type"] in _AWAITED:
            self._loading.add(event["requestId"])

    def _record_end(self, event: dict[str, Any]) -> None:
        self._loading.discard(event["requestId"])
        self._answered.set()

    async def _route(self, route: Any) -> None:
        with suppress(PlaywrightError):  # the page is over
            await self._answer(route, route.request)

    async def _answer(self, route: Any, request: Any) -> None:
        kind = _KINDS.get(request.resource_type, request.resource_type)
        if request.is_navigation_request():
            frame = _frame_of(request)
            if frame is None or frame == self._page.main_frame:
                await self._navigate(route, request)
                return
            kind = "frame"
        asked = Asked(request.url, kind, request.method, request.headers, request.post_data_buffer or b"")
        self._waiting += 1
        try:
            answered = await self._loads.fetch(asked)
            await route.fulfill(status=answered.status, headers=dict(answered.headers), body=answered.body)
        except LoadRefusedError:
            await route.abort("blockedbyclient")
        finally:
            self._waiting -= 1
            self._answered.set()

    async def _navigate(self, route: Any, request: Any) -> None:
        """Show the fetched page. Where its scripts navigate becomes a link, and is not loaded."""
        if self._is_shown:
            if request.method == "GET" and len(self._gone_to) < LINKS_MAX:
                self._gone_to[request.url.partition("#")[0]] = None
            await route.fulfill(status=204)
            return
        self._is_shown = True
        headers = {name: value for name, value in self._raw.headers.items() if name not in _NOT_SHOWN}
        await route.fulfill(status=200, headers=headers, body=self._raw.body)

    def _close_popup(self, page: Any) -> None:
        if page is not self._page:
            asyncio.ensure_future(_close_page(page))  # noqa: RUF006 - it ends with its context

    async def _close(self, context: Any) -> None:
        """Close the context, and with it the page's process."""
        try:
            async with asyncio.timeout(self._last_s):
                await context.close()
        except TimeoutError:
            raise PageSuspectError("its context does not close", hangs=True, needs_kill=True) from None


def _frame_of(request: Any) -> Any:
    try:
        return request.frame
    except PlaywrightError:  # of a window that is about to open
        return None


async def _close_page(page: Any) -> None:
    with suppress(PlaywrightError):
        await page.close()


async def _close_socket(socket: Any) -> None:
    with suppress(PlaywrightError):
        await socket.close()


async def _detach(session: Any) -> None:
    with suppress(PlaywrightError):  # the page is over
        await session.detach()


async def _dismiss(dialog: Any) -> None:
    with suppress(PlaywrightError):
        await dialog.dismiss()


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
