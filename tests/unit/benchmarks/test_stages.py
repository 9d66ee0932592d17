"""Stacks become stages: the innermost call that tells something decides."""

from __future__ import annotations

from pathlib import Path

import pytest

import bigcrawl
from benchmarks.crawl.stages import STAGES, stage_costs, stage_of

PRODUCT = Path(bigcrawl.__file__).parent
SITE = "/venv/lib/python3.11/site-packages"
LIBRARY = "/usr/lib/python3.11"
LOOP = [f"{LIBRARY}/asyncio/base_events.py:BaseEventLoop._run_once", f"{SITE}/twisted/internet/asyncioreactor.py:run"]
START = [*LOOP, f"{SITE}/scrapy/crawler.py:CrawlerProcess.start"]


@pytest.mark.parametrize(
    ("stack", "stage"),
    [
        (["/src/bigcrawl/url/canonical.py:join", "/src/bigcrawl/links/page.py:extract_links"], "canonical and key"),
        (["/src/bigcrawl/links/page.py:extract_links", "/src/bigcrawl/spiders/broad.py:parse"], "parse and links"),
        ([f"{SITE}/redis/asyncio/client.py:execute", "/src/bigcrawl/scheduler/node/exchange.py:run"], "Redis client"),
        ([f"{LIBRARY}/pathlib.py:Path.replace", "/src/bigcrawl/drum/files.py:rename"], "frontier"),
        ([f"{LIBRARY}/base64.py:b32encode", "/src/bigcrawl/warc/records.py:_record"], "WARC"),
        ([f"{SITE}/scrapy/core/downloader/__init__.py:fetch", f"{SITE}/scrapy/core/engine.py:_download"], "download"),
        ([f"{SITE}/scrapy/core/scheduler.py:next_request", f"{SITE}/scrapy/core/engine.py:_next"], "frontier"),
        ([f"{SITE}/scrapy/utils/defer.py:run", f"{SITE}/scrapy/core/engine.py:_next"], "engine"),
        ([f"{SITE}/scrapy/http/headers.py:normkey", f"{SITE}/scrapy/core/downloader/webclient.py:get"], "download"),
        ([f"{SITE}/scrapy/linkextractors/lxmlhtml.py:extract_links"], "parse and links"),
        ([f"{SITE}/scrapy_redis/queue.py:pop"], "frontier"),
        ([f"{SITE}/scrapy/utils/reactor.py:call"], "engine"),
        (["/home/me/project/extension.py:on_idle"], "event loop"),
    ],
)
def test_stage_of_a_call_in_a_running_crawl(stack: list[str], stage: str) -> None:
    assert stage_of([*stack, *START]) == stage


def test_every_package_that_works_in_a_crawl_has_a_stage_of_its_own() -> None:
    """A package that is added must be added to the table, or its time would fall to whoever called it."""
    packages = {path.parent.name for path in PRODUCT.glob("*/__init__.py")}
    packages -= {"commands", "plots", "profiles", "sampling", "simweb", "views"}
    assert len(packages) > 8
    staged = [fragment for _, fragments in STAGES for fragment in fragments]
    for package in packages:
        assert any(fragment.startswith(f"/bigcrawl/{package}/") for fragment in staged), package


def test_a_stack_of_nothing_known_is_other() -> None:
    assert stage_of([f"{LIBRARY}/threading.py:Thread._bootstrap"]) == "other"


def test_all_cpu_of_the_process_is_in_the_table_once() -> None:
    """Main thread, other threads, collector, the unsampled rest and native threads sum up to the process."""
    parse = ["/src/bigcrawl/links/page.py:extract_links", *START]
    fold = ["/src/bigcrawl/drum/files.py:rename", f"{LIBRARY}/threading.py:run"]
    costs = stage_costs(
        {
            "pages": 10,
            "gc_ns": 1_000_000,
            "main_ns": 8_000_000,
            "process_ns": 12_000_000,
            "main": [[parse, 4_000_000], [[LOOP[0], *START], 2_000_000]],
            "others": [[fold, 3_000_000]],
        }
    )
    assert costs.main == pytest.approx(
        {"parse and links": 400, "event loop": 200, "garbage collector": 100, "not sampled": 100}
    )
    assert costs.others == pytest.approx({"frontier": 300, "native threads": 100})
    assert costs.total_us == pytest.approx(1_200)
    assert [name for name, _ in costs.functions] == [parse[0], fold[0], LOOP[0]]
    assert costs.functions[0][1] == pytest.approx(400)
