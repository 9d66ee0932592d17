"""What a crawl leaves on disk is its owner's alone, whatever the process' umask allows."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path


class CarelessCrawl(Crawl):
    """Run by somebody whose files everybody may read and write."""

    def command(self) -> list[str]:
        python, dash_m, *words = super().command()
        return [python, dash_m, "tests.support.crawling.careless", *words]


def open_to_others(root: Path) -> dict[str, str]:
    """Everything below a directory, and the directory, that others than the owner may do anything with."""
    modes = {path: stat.filemode(path.lstat().st_mode) for path in (root, *root.rglob("*"))}
    return {str(path.relative_to(root)): mode for path, mode in modes.items() if not mode.endswith("------")}


@pytest.mark.long("a crawl whose pages are for a group, and whose state is for nobody else")
def test_state_and_pages_are_closed_to_others(tmp_path: Path) -> None:
    """State, socket, log and data of the embedded server, pages: while it runs, after kill -9, and at the end."""
    settings = {"BIGCRAWL_HOST_DELAY": 0.02, "BIGCRAWL_PARTITIONS": 8, "BIGCRAWL_DURABLE_SECONDS": 0.5}
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=8, pages=20) as web:
        # A short name, because the path of a socket that is too long would be another one.
        crawl = CarelessCrawl(tmp_path / "c", web.seeds, settings)
        state, pages = crawl.directory / "state" / crawl.name, crawl.directory / "warc"
        with crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 60, "the crawl is under way")
            crawl.kill()
            kinds = {"".join(path.suffixes[-1:]) for path in state.rglob("*")}
            assert {".sock", ".aof", ".log", ".lock", ".json"} <= kinds
            assert open_to_others(state) == {}
            assert {stat.S_IMODE(path.stat().st_mode) for path in pages.iterdir()} == {0o600}

            state.chmod(0o755)  # as an earlier version left it
            assert crawl.run() == 0
            assert stat.S_IMODE(state.stat().st_mode) == 0o700
            assert open_to_others(state) == {}
            assert {stat.S_IMODE(path.stat().st_mode) for path in pages.iterdir()} == {0o600}


def test_pages_are_for_those_who_were_named(tmp_path: Path) -> None:
    """BIGCRAWL_WARC_MODE lets the group read pages, and nothing of the state."""
    settings = {"BIGCRAWL_HOST_DELAY": 0.02, "BIGCRAWL_PARTITIONS": 8, "BIGCRAWL_WARC_MODE": "640"}
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=2, pages=3) as web:
        crawl = CarelessCrawl(tmp_path / "crawl", web.seeds, settings)
        with crawl:
            assert crawl.run() == 0
        assert {stat.S_IMODE(path.stat().st_mode) for path in (crawl.directory / "warc").iterdir()} == {0o640}
        assert open_to_others(crawl.directory / "state" / crawl.name) == {}
