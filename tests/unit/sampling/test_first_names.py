"""Sampling is found where it was first, and Scrapy's other spiders where it is missing."""

from __future__ import annotations

import subprocess
import sys

FOUND = """
from bigcrawl_sampling.spider import SampleSpider
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader
import bigcrawl.sampling, bigcrawl.spiders.sample, bigcrawl_sampling
assert bigcrawl.sampling is bigcrawl_sampling
assert bigcrawl.spiders.sample.SampleSpider is SampleSpider
loader = SpiderLoader.from_settings(Settings({"SPIDER_MODULES": ["bigcrawl.spiders"]}))
assert loader.load("sample") is SampleSpider
"""
MISSING = """
import sys
sys.modules["bigcrawl_sampling"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "bigcrawl_sampling" else find(name, *rest)
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader
loader = SpiderLoader.from_settings(Settings({"SPIDER_MODULES": ["bigcrawl.spiders"]}))
assert loader.load("broad")
spider = loader.load("sample")(seeds="http://a.example/", walks=3)
assert "pip install bigcrawl brings it" in str(spider.wrong_arguments)
"""


def test_the_first_names_are_kept() -> None:
    """As modules, by the spider's name, and on the command line."""
    subprocess.run([sys.executable, "-c", FOUND], check=True)
    command = [sys.executable, "-m", "bigcrawl.sampling", "--help"]
    assert "--sample" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_spider_says_what_it_lacks_and_the_others_are_there() -> None:
    subprocess.run([sys.executable, "-c", MISSING], check=True)
