"""Browsers have no network of their own, and are replaced and killed whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bigcrawl_rendering.processes import is_alive, processes_of
from bigcrawl_rendering.requirements import browser_path
from tests.support.servers.scripted_web import INSIDE, scripted_web

pytestmark = pytest.mark.system


def browsers(ends: list[str], **given: Any) -> Any:
    from bigcrawl_rendering import browsers as module  # Playwright may be missing elsewhere

    settings = {"browsers": 1, "tabs": 2, "memory_bytes": 2_000_000_000, **given}
    return module.Browsers(browser_path(), record_end=ends.append, **settings)


def test_what_no_node_answers_reaches_no_server() -> None:
    """Without anybody who intercepts, neither pages, nor scripts, nor sockets, nor workers get an answer."""
    tries = """async (url) => {
      const socket = new WebSocket(url.replace("http", "ws"));
      const worker = new Worker(URL.createObjectURL(new Blob([`fetch("${url}?worker").catch(() => 0)`])));
      navigator.sendBeacon(url + "?beacon"); new Image().src = url + "?image";
      const answers = await Promise.allSettled([fetch(url), fetch(url, { mode: "no-cors" })]);
      await new Promise((done) => setTimeout(done, 300));
      return answers.map((each) => each.status);
    }"""

    async def scenario(url: str) -> tuple[str, list[str]]:
        pool = browsers([])

        async def work(browser: Any) -> tuple[str, list[str]]:
            page = await browser.shown.new_page()
            try:
                await page.goto(url)
            except Exception as error:  # noqa: BLE001 - which of them is asserted below
                told = str(error)
            empty = await browser.shown.new_page()
            return told, await empty.evaluate(tries, url)

        try:
            return await pool.run(work, alone=False)
        finally:
            await pool.close()

    with scripted_web(1) as web:
        told, answers = asyncio.run(scenario(f"{web.bases[INSIDE]}/secret"))
        assert "ERR_PROXY_CONNECTION_FAILED" in told
        assert answers == ["rejected", "rejected"]
        assert web.log == []


def test_a_browser_is_replaced_after_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from bigcrawl_rendering import browsers as module

    monkeypatch.setattr(module, "PAGES_MAX", 2)
    ends: list[str] = []

    async def scenario() -> set[str]:
        pool = browsers(ends)
        marks = set()

        async def work(browser: Any) -> None:
            page = await browser.shown.new_page()
            await page.close()
            marks.add(browser.mark)

        await asyncio.gather(*(pool.run(work, alone=False) for _ in range(5)))
        await pool.close()
        return marks

    marks = asyncio.run(scenario())
    assert len(marks) == 3
    assert ends == ["recycled"] * 3
    assert [mark for mark in marks if any(map(is_alive, processes_of(mark)))] == []


def test_a_page_whose_browser_is_killed_is_a_suspect() -> None:
    from bigcrawl_rendering.interface import PageSuspectError

    ends: list[str] = []

    async def scenario() -> str:
        pool = browsers(ends)

        async def work(browser: Any) -> None:
            browser.kill("killed")
            await asyncio.Event().wait()

        try:
            with pytest.raises(PageSuspectError, match="its browser killed"):
                await pool.run(work, alone=True)
            return await pool.run(_version, alone=False)
        finally:
            await pool.close()

    assert asyncio.run(scenario()).startswith("Chromium ")
    assert ends == ["killed", "recycled"]


async def _version(browser: Any) -> str:
    return str(browser.version)
