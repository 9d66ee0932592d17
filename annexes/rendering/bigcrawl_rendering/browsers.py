"""Browsers of a node: started when a page needs one, bounded, replaced after so many pages, and killed whole.

    started --- PAGES_MAX pages ---> retired: no further page --- its last page ends ---> closed
       |
       +--- it dies, hangs, or has too much memory ---> killed: its pages are suspects

A suspect gets a browser of its own, one at a time, besides the others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from playwright.async_api import async_playwright

from bigcrawl_rendering.interface import PageSuspectError
from bigcrawl_rendering.processes import Process, kill_all, memory_of, processes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

logger = logging.getLogger(__name__)

PAGES_MAX: Final = 200
"""Pages after which a browser is replaced: browsers grow with what they have shown."""

LOOK_S: Final = 1.0
START_S: Final = 60.0
START_TRIES: Final = 3
END_S: Final = 5.0
NOWHERE: Final = "http://127.0.0.1:1"
"""The proxy of all browsers, where nothing listens: a request that is not answered by the node fails."""

FLAGS: Final = (
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
    "--disable-domain-reliability", "--disable-client-side-phishing-detection", "--no-first-run", "--no-pings",
    "--disable-quic", "--dns-prefetch-disable", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--js-flags=--max-old-space-size=512", "--disable-breakpad",
    "--disable-features=OptimizationHints,MediaRouter,DialMediaRouteProvider,Prerender2,Translate",
)  # fmt: skip


class Browser:
    """A running browser with its own driver. `gone` is done, with the reason, once it can show no more pages."""

    def __init__(self, shown: Any, driver: Any, mark: str, *, is_shared: bool) -> None:
        self.shown = shown
        self._driver = driver
        self.is_shared = is_shared
        self.version = f"Chromium {shown.version}"
        self.tabs = 0
        self.pages = 0
        self.gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.mark = mark
        self._processes: list[Process] = processes_of(mark)
        shown.on("disconnected", lambda *_: self.record_end("died"))

    def record_end(self, how: str) -> None:
        if not self.gone.done():
            self.gone.set_result(how)

    def has_room(self, tabs_max: int) -> bool:
        return not self.gone.done() and self.pages < PAGES_MAX and self.tabs < tabs_max

    def memory(self) -> int:
        """Return the memory of all of the browser's processes; 0 if there are none left."""
        processes = processes_of(self.mark)
        self._processes = processes or self._processes
        return memory_of(processes)

    def kill(self, how: str) -> None:
        """Kill all of the browser's processes, but not its driver, which would report an error."""
        self.record_end(how)
        kill_all(processes_of(self.mark, with_driver=False))

    async def close(self) -> None:
        self.record_end("recycled")
        for end in (self.shown.close, self._driver.stop):
            with suppress(Exception):  # of a browser or driver that is gone
                async with asyncio.timeout(END_S):
                    await end()
        kill_all([*self._processes, *processes_of(self.mark)])


class Browsers:
    def __init__(
        self, path: str, browsers: int, tabs: int, memory_bytes: int, record_end: Callable[[str], None]
    ) -> None:
        self._path = path
        self._browsers_max = browsers
        self._tabs_max = tabs
        self._memory_bytes = memory_bytes
        self._record_end = record_end
        self._running: set[Browser] = set()
        self._change = asyncio.Event()
        self._starting = asyncio.Lock()
        self._alone = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._shared = 0  # browsers for all pages, also those that are being started

    async def run(self, work: Callable[[Browser], Coroutine[Any, Any, T]], *, alone: bool) -> T:
        """Run a function with a page in a browser with room, or if `alone`, in a separate browser.

        Raises:
            PageSuspectError: the browser is gone, or Playwright has failed in it.
        """
        if alone:
            async with self._alone:
                browser = await self._start(is_shared=False)
                try:
                    return await _run_until_gone(browser, work(browser))
                finally:
                    await self._end(browser)
        browser = await self._take_tab()
        try:
            return await _run_until_gone(browser, work(browser))
        finally:
            browser.tabs -= 1
            if browser.tabs == 0 and (browser.pages >= PAGES_MAX or browser.gone.done()):
                await self._end(browser)
            self._wake_waiting()

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.gather(*(self._end(browser) for browser in list(self._running)))

    async def _take_tab(self) -> Browser:
        while True:
            usable = [each for each in self._running if each.is_shared and each.has_room(self._tabs_max)]
            if usable:
                browser = min(usable, key=lambda each: each.tabs)
                browser.tabs += 1
                browser.pages += 1
                return browser
            if self._shared < self._browsers_max:
                self._shared += 1
                try:
                    await self._start(is_shared=True)
                except BaseException:
                    self._shared -= 1
                    raise
                self._wake_waiting()
            else:
                await self._change.wait()

    def _wake_waiting(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    async def _start(self, *, is_shared: bool) -> Browser:
        async with self._starting:
            for tries in range(START_TRIES):
                try:
                    browser = await self._launch(is_shared=is_shared)
                    break
                except Exception as error:
                    logger.debug("a browser does not start: %(error)s", {"error": error})
                    if tries + 1 == START_TRIES:
                        raise
        self._running.add(browser)
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._enforce_limits())
        return browser

    async def _launch(self, *, is_shared: bool) -> Browser:
        mark = f"--bigcrawl-browser={'shared' if is_shared else 'alone'}-{uuid.uuid4().hex}"
        is_root = os.geteuid() == 0
        driver = await async_playwright().start()
        try:
            shown = await driver.chromium.launch(
                executable_path=self._path,
                args=[*FLAGS, mark],
                chromium_sandbox=not is_root,  # Chromium's needs another user than root
                proxy={"server": NOWHERE},
                timeout=1000 * START_S,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except BaseException:
            with suppress(Exception):
                await driver.stop()
            raise
        return Browser(shown, driver, mark, is_shared=is_shared)

    async def _end(self, browser: Browser) -> None:
        if browser not in self._running:
            return
        self._running.discard(browser)
        if browser.is_shared:
            self._shared -= 1
        await browser.close()
        self._record_end(browser.gone.result())

    async def _enforce_limits(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for browser in list(self._running):
                memory = await asyncio.get_running_loop().run_in_executor(None, browser.memory)
                if not memory:
                    browser.record_end("died")
                if memory > self._memory_bytes and not browser.gone.done():
                    logger.warning("a browser with %(memory)d MB is killed", {"memory": memory // 1_000_000})
                    browser.kill("killed")
                if browser.gone.done() and browser.tabs == 0:
                    await self._end(browser)
                    self._wake_waiting()


async def _run_until_gone(browser: Browser, work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    either: set[asyncio.Future[Any]] = {task, browser.gone}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    except PageSuspectError:
        raise
    except Exception as error:  # Playwright raises others than its own when its driver ends
        raise PageSuspectError(str(error).partition("\n")[0]) from error
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    raise PageSuspectError(f"its browser {browser.gone.result()}")
