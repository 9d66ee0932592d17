"""Which share of a web that is known a list has."""

from __future__ import annotations

import gzip
import json
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.url.key import PUBLIC_KEYS
from bigcrawl_sampling.__main__ import main
from bigcrawl_sampling.coverage import read_listed
from bigcrawl_sampling.estimating import WalkArrays
from bigcrawl_sampling.steps import WalkStep
from bigcrawl_simweb.web import Web
from tests.annexes.sampling.test_estimating import PAGES, WALKS, links_of_web, walks_over

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PORT = 80


@pytest.mark.parametrize(
    ("has", "truth"),
    [
        (lambda page: page % 4 == 0, 0.25),
        (lambda page: page % 10 == 0, 0.1),  # pages that walks meet ten times as often
        (lambda page: page % 10 > 0, 0.9),
        (lambda page: page < 15, 0.01),
        (lambda page: True, 1.0),
        (lambda page: False, 0.0),
    ],
)
def test_intervals_cover_the_share(has: Callable[[int], bool], truth: float) -> None:
    """Eighteen of twenty at least, also if the list has what is linked to most, all or nothing."""
    links = links_of_web(Random(7))
    keys = np.array([page for page in range(PAGES) if has(page)], dtype=np.uint64)
    found = [WalkArrays(walks_over(links, WALKS, Random(seed))).coverage(keys) for seed in range(20)]
    assert sum(one.low <= truth <= one.high for one in found) >= 18
    assert fmean(one.value for one in found) == pytest.approx(truth, abs=0.03)
    assert fmean(one.high - one.low for one in found) < 0.25
    assert all(0 <= one.low <= one.value <= one.high <= 1 for one in found)


def steps_over(web: Web, walks: int, dice: Random) -> list[WalkStep]:
    """The steps of walks over a simulated web, as the spider `sample` records them."""
    seeds, statuses, steps = web.seeds(PORT), web.reachable(PORT, web.seeds(PORT)), []
    for walk in range(walks):
        url, number = dice.choice(seeds), 0
        while True:
            answers = statuses.get(url) == 200
            links = sorted(set(web.leads_to(url, PORT))) if answers else []
            steps.append(WalkStep.from_urls(walk, number, url, url, links, answers=answers))
            if not links or dice.random() < 0.15:
                break
            url, number = dice.choice(links), number + 1
    return steps


def test_command_says_what_an_index_has_of_a_simulated_web(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same for a list, an index and an export, of a third of the hosts; a line that is no URL is counted."""
    web = Web(seed=7, hosts=40, pages_per_host=20)
    pages = [url for url, status in web.reachable(PORT, web.seeds(PORT)).items() if status == 200]
    hosts = sorted({url.split("/")[2] for url in pages})
    here = [url for url in pages if hosts.index(url.split("/")[2]) % 3 == 0]
    walks = tmp_path / "walks.jsonl"
    walks.write_text("".join(f"{json.dumps(step._asdict())}\n" for step in steps_over(web, 150, Random(3))))
    (tmp_path / "list.txt").write_text("# mine\n" + "\n".join([*here, "", "nothing"]))
    lines = "".join(f'x 20260102030405 {{"url": "{url}", "status": "200"}}\n' for url in here)
    (tmp_path / "index.cdxj.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "index.cdx").write_text("".join(f"x 20260102030405 {url} text/html 200 S\n" for url in here))
    (tmp_path / "export.jsonl").write_text("".join(f'{{"url": "{url}"}}\n' for url in here))
    names = ("list.txt", "index.cdxj.gz", "index.cdx", "export.jsonl")
    assert main([str(walks), "--covered-by", *(str(tmp_path / name) for name in names)]) == 0
    told = capsys.readouterr().out.splitlines()[3:]
    assert f"list.txt, {len(here):,} URLs (1 lines are no URL): has " in told[0]
    assert len({line.partition(": has ")[2] for line in told}) == 1
    low, high = (float(part.rstrip("%")) / 100 for part in told[0].split("(")[2].split(")")[0].split(" to "))
    assert low <= len(here) / len(pages) <= high < low + 0.4


def test_list_of_any_size_keeps_what_was_sampled(tmp_path: Path) -> None:
    """And counts the rest."""
    file = tmp_path / "list.txt"
    file.write_text("".join(f"http://a.example/{number}\n" for number in range(25_000)))
    wanted = PUBLIC_KEYS.of_urls([f"http://a.example/{number}" for number in (7, 24_999, 30_000)])
    found = read_listed(file, np.array(sorted(wanted.tolist()), dtype=np.uint64))
    assert (set(found.keys.tolist()), found.urls, found.skipped) == (set(wanted.tolist()[:2]), 25_000, 0)


def test_file_that_cannot_be_read_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not there, or is cut off."""
    walks = tmp_path / "walks.jsonl"
    steps = walks_over(links_of_web(Random(1)), 60, Random(1))
    walks.write_text("".join(f"{json.dumps(step._asdict())}\n" for step in steps))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"http://a.example/\n" * 1_000)[:-20])
    for name in ("missing", "cut.gz"):
        assert main([str(walks), "--covered-by", str(tmp_path / name)]) == 1
        told = capsys.readouterr().err
        assert f"{name} cannot be read: " in told
        assert told.count("\n") == 1
