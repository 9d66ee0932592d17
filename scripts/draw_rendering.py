"""`python -m scripts.draw_rendering`: docs/guide/rendering.png, a page as it is fetched and after its scripts.

Both are shown by Chromium without scripts: the answer of the server, and the document that the renderer made of it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import quote

from playwright.async_api import async_playwright

from bigcrawl_rendering.browsers import Browsers
from bigcrawl_rendering.interface import Answered, Asked, RawPage
from bigcrawl_rendering.requirements import browser_path
from bigcrawl_rendering.tab import Tab

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "guide" / "rendering.png"
STYLE: Final = """<style>body { font: 15px sans-serif; margin: 24px; color: #223 }
h1 { font-size: 22px; margin: 0 0 12px }
#list { min-height: 20px } li { margin: 6px 0 } button { margin-top: 10px }</style>"""
PAGE: Final = f"""<!doctype html><html><head><title>Maps</title>{STYLE}</head><body><h1>Old maps</h1><ul id=list></ul>
<button id=more>Load more</button><script>
let at = 0; const list = document.getElementById("list"), button = document.getElementById("more");
const show = (maps) => {{ for (const map of maps.slice(at, at += 3)) list.insertAdjacentHTML("beforeend",
  `<li><a href="/maps/${{map}}">Map of ${{map}}</a></li>`); button.hidden = at >= maps.length }};
fetch("/maps.json").then((answer) => answer.json()).then((maps) => {{ show(maps); button.onclick = () => show(maps) }});
</script></body></html>"""
FRAMES: Final = """<style>body { margin: 0; display: flex; gap: 12px; background: #e8eaee; padding: 12px }
figure { margin: 0; flex: 1; font: 14px sans-serif } figcaption { padding: 4px 2px }
iframe { border: 1px solid #bbc; background: #fff; width: 100%; height: 330px }</style>"""
FRAME: Final = '<figure><figcaption>{}</figcaption><iframe sandbox src="{}"></iframe></figure>'


class Maps:
    async def fetch(self, asked: Asked) -> Answered:
        body = b'["Ashford", "Bexhill", "Canterbury", "Deal", "Faversham", "Hythe", "Lydd", "Margate"]'
        return Answered(asked.url, 200, {"content-type": "application/json"}, body)


async def draw() -> None:
    path = browser_path()
    browsers = Browsers(path, 1, 1, 2_000_000_000, lambda _how: None)
    tab = Tab(RawPage("http://maps.example/", PAGE.encode(), {"content-type": "text/html"}), Maps(), active_s=20,
              total_s=60, steps_max=10)  # fmt: skip
    rendered = await browsers.run(lambda browser: tab.render(browser.shown, ""), alone=False)
    await browsers.close()
    shown = (
        ("as it is fetched: no links", PAGE),
        ("after its scripts, and two clicks on “more”: 8 links", rendered.html),
    )
    frames = "".join(FRAME.format(title, "data:text/html;charset=utf-8," + quote(html)) for title, html in shown)
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path)
        page = await browser.new_page(viewport={"width": 960, "height": 390}, java_script_enabled=False)
        await page.set_content(FRAMES + frames)
        await page.wait_for_timeout(500)
        await page.screenshot(path=PICTURE)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(draw())
