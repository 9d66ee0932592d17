"""What pages ask for beside robots.txt, in a real crawl: what is followed, and what stands beside the pages on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.integration.robots.origin import Answer, Origin
from tests.integration.robots.test_conformance import SETTINGS
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

HTML = ("Content-Type", "text/html")
LINKED = b'<a href="/ok">x</a> <a rel="nofollow" href="/marked">y</a>'
PAGES = {
    "/plain": (b'<link rel="canonical" href="/plain">', ()),
    "/meta": (b'<meta name="robots" content="nofollow, noarchive">', ()),
    "/own": (b'<meta name="ExampleBot" content="none">', ()),
    "/other": (b'<meta name="otherbot" content="none">', (("X-Robots-Tag", "otherbot: noindex"),)),
    "/header": (b"", (("X-Robots-Tag", "noindex, nofollow"), ("X-Robots-Tag", "examplebot: nosnippet"))),
    "/elsewhere": (b'<link rel="canonical" href="/plain">', ()),
}
WISHES = {
    "/meta": b"robots: noarchive, nofollow\r\n",
    "/own": b"robots: nofollow, noindex\r\n",
    "/header": b"robots: nofollow, noindex, nosnippet\r\n",
    "/elsewhere": b"canonical: %s/plain\r\n",
}


@pytest.mark.parametrize("follows", [False, True])
def test_wishes_are_obeyed_and_noted(tmp_path: Path, follows: bool) -> None:
    """Followed is what may be, by the server's log; what is asked for refers to the page that asks, in the archive."""
    with no_strays_below(tmp_path), Origin(tmp_path) as origin:
        host = origin.listen(0)
        links = b"".join(b'<a href="%s">x</a>' % path.encode() for path in PAGES)
        host.answers = {"/robots.txt": (Answer(404),), "/": (Answer(200, links, (HTML,)),)} | {
            path: (Answer(200, head + LINKED.replace(b'"/', b'"%s/' % path.encode()), (HTML, *headers)),)
            for path, (head, headers) in PAGES.items()
        }
        settings = {**SETTINGS, "BIGCRAWL_NOFOLLOW": "follow" if follows else "obey"}
        with Crawl(tmp_path / "crawl", [host.origin + "/"], settings) as crawl:
            assert crawl.run() == 0
            noted = notes(tmp_path / "crawl" / "warc")
    open_pages = PAGES if follows else ("/plain", "/other", "/elsewhere")
    followed = {path + link for path in open_pages for link in ("/ok", *(("/marked",) if follows else ()))}
    assert set(host.asked) == {"/robots.txt", "/", *PAGES, *followed}
    place = host.origin.encode()
    assert noted == {
        host.origin + path: fields % place if b"%s" in fields else fields for path, fields in WISHES.items()
    }


def notes(directory: Path) -> dict[str, bytes]:
    """The directives in metadata records, by the URL of the response that they refer to."""
    pages: dict[str, str] = {}
    found: dict[str, bytes] = {}
    for file in sorted(directory.glob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                headers = record.rec_headers
                if record.rec_type == "response":
                    pages[headers.get_header("WARC-Record-ID")] = headers.get_header("WARC-Target-URI")
                elif record.rec_type == "metadata":
                    page = pages[headers.get_header("WARC-Refers-To")]
                    assert page == headers.get_header("WARC-Target-URI")
                    block = record.content_stream().read()
                    if not block.startswith(b"fetchTimeMs: "):
                        assert page not in found
                        found[page] = block
    return found
