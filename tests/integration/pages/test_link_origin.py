"""What is queued with a link is in the metadata of its page, and its bytes are counted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.support.crawling.crawls import Crawl, SimulatedWeb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {"BIGCRAWL_HOST_DELAY": 0}
NAMES = ("via", "foundTime", "foundAddress")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path_factory.mktemp("web"), hosts=4, pages=10) as served:
        yield served


def noted(warc: Path) -> dict[str, dict[str, str]]:
    """The fields of each page's metadata record."""
    found = {}
    for path in warc.glob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "metadata":
                    lines = record.content_stream().read().decode().split("\r\n")
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    found[url] = dict(line.split(": ", 1) for line in lines if line)
    return {url: fields for url, fields in found.items() if not url.endswith("/robots.txt")}


@pytest.mark.parametrize(("kept", "wanted"), [("auto", 0), ("parent", 1), ("full", 3)])
def test_metadata_name_the_page_and_server_of_each_link(
    web: SimulatedWeb, tmp_path: Path, kept: str, wanted: int
) -> None:
    """The parent links to the page, its address is that of its host, and all of it costs the bytes that it has."""
    settings = {**SETTINGS, "BIGCRAWL_LINK_ORIGIN": kept}
    with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
        assert crawl.run() == 0, crawl.log.read_text()[-4000:]
        log = crawl.log.read_text()
    pages = noted(tmp_path / "crawl" / "warc")
    of_links = {
        url: fields
        for url, fields in pages.items()
        if fields["depth"] != "0" and (not fields.get("via") or url in web.web.leads_to(fields["via"], web.saved.port))
    }
    assert len(of_links) > 30
    redirected = {url for url, fields in pages.items() if url not in of_links and "via" in fields}
    assert len(redirected) < len(of_links) / 2
    named = [sum(name in fields for name in NAMES) for fields in of_links.values()]
    assert sum(count == wanted for count in named) > 0.8 * len(named)
    for url, fields in of_links.items():
        if "foundAddress" in fields:
            assert fields["via"].split("/")[2].split(":")[0] == fields["foundAddress"], url
            assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", fields["foundTime"])
    counted = re.search(r"'bigcrawl/links/origin_bytes': (\d+)", log)
    sent = re.search(r"'bigcrawl/links/sent': (\d+)", log)
    assert sent
    assert bool(counted) == bool(wanted)
    if counted:
        longest = max(len(fields.get("via", "")) for fields in pages.values())
        per_url = int(counted[1]) / int(sent[1])
        assert 15 < per_url <= longest + (4 if wanted == 1 else 24)
