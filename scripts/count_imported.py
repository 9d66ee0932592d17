"""`python -m scripts.count_imported`: how many lines of bigcrawl a crawl imports whose project sets no options.

The crawl is that of one page of a server of this process, with a spider and an item. Prints the sum, the largest rooms,
and with a number the largest modules.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[1]

_SETTINGS: Final = """
ADDONS = {"bigcrawl.addon.Addon": 500}
SPIDER_MODULES = ["one_spider"]
BIGCRAWL_ALLOW_PRIVATE_ADDRESSES = True  # or the page could not be fetched
TELNETCONSOLE_ENABLED = REMOTE_CONTROL_ENABLED = False
"""
_SPIDER: Final = """
import atexit, json, sys
import scrapy

class OneSpider(scrapy.Spider):
    name = "one"
    start_urls = [{url!r}]

    def parse(self, response):
        yield {{"title": response.css("title::text").get()}}

@atexit.register
def write_names():
    with open("names.json", "w") as file:
        json.dump([name for name in sys.modules if name.partition(".")[0] == "bigcrawl"], file)
"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_page = self.path == "/"
        body = b"<title>One</title>" if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """The crawl has a log."""


def imported() -> dict[str, int]:
    """Return the lines of each module that is loaded when the crawl ends, by its name."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server, tempfile.TemporaryDirectory() as directory:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        project = Path(directory)
        (project / "scrapy.cfg").write_text("[settings]\ndefault = one_settings\n")
        (project / "one_settings.py").write_text(_SETTINGS)
        (project / "one_spider.py").write_text(_SPIDER.format(url=f"http://127.0.0.1:{server.server_port}/"))
        command = [sys.executable, "-m", "scrapy", "crawl", "one"]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        server.shutdown()
        if done.returncode or (
            "'item_scraped_count': 1" not in done.stderr + done.stdout and "200 OK" not in done.stdout
        ):
            raise SystemExit(f"the crawl failed:\n{done.stderr}{done.stdout}")
        names = json.loads((project / "names.json").read_text())
    return {name: len(path_of(name).read_text("utf-8").splitlines()) for name in names}


def path_of(name: str) -> Path:
    path = PROJECT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def main() -> None:
    lines = imported()
    modules = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    rooms: Counter[str] = Counter()
    for name, count in lines.items():
        rooms[path_of(name).parent.relative_to(PROJECT).as_posix()] += count
    print(f"{sum(lines.values()):,} lines in {len(lines)} modules")
    for counts, most in ((rooms, 20), (Counter(lines), modules)):
        for name, count in counts.most_common(most):
            print(f"{count:7,}  {name}")


if __name__ == "__main__":
    main()
