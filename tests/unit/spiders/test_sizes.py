"""Spiders are short: what is no spider's business has its own place, and a reader copies one to begin with."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import scrapy

import bigcrawl.spiders
from bigcrawl.spiders.broad import BroadSpider

LINES_MAX = 80  # of the whole file, imports and docstrings included


def spider_files() -> dict[type[scrapy.Spider], int]:
    """Each spider that can be run by its name, and the lines of its file."""
    found = {}
    for found_module in pkgutil.iter_modules(bigcrawl.spiders.__path__):
        module = importlib.import_module(f"bigcrawl.spiders.{found_module.name}")
        for _, one in inspect.getmembers(module, inspect.isclass):
            if issubclass(one, scrapy.Spider) and "name" in vars(one) and one.__module__ == module.__name__:
                found[one] = len(inspect.getsource(module).splitlines())
    return found


def test_spiders_are_short() -> None:
    """All but the one that the others are made of."""
    files = spider_files()
    assert {one.name for one in files} == {"broad", "feeds", "focused", "recrawl", "sample", "site", "sitemap"}
    assert {one.name: lines for one, lines in files.items() if lines > LINES_MAX and one is not BroadSpider} == {}
