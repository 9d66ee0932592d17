"""Single pages in the log: what no handler takes is not made, and what one takes is as Scrapy has it."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import TextResponse
from scrapy.logformatter import LogFormatter as ScrapysFormatter
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from bigcrawl.extensions.log_formatter import LogFormatter, is_heard

if TYPE_CHECKING:
    from collections.abc import Iterator

SPIDER = Spider("plain")
PAGE = TextResponse("http://a.example/", body=b"text", request=Request("http://a.example/"))


@contextmanager
def handling(name: str, level: int) -> Iterator[None]:
    """A handler of this level on a logger, and no other on it or above it, as after Scrapy's start."""
    loggers = [logging.getLogger(), *map(logging.getLogger, ("scrapy", "scrapy.core", "scrapy.core.engine"))]
    before = [(logger, logger.handlers, logger.level, logger.propagate) for logger in loggers]
    handler = logging.Handler(level)
    try:
        for logger in loggers:
            logger.handlers, logger.propagate = [], True
            logger.setLevel(logging.NOTSET)
        logging.getLogger(name).addHandler(handler)
        yield
    finally:
        for logger, handlers, former, propagates in before:
            logger.handlers, logger.propagate = handlers, propagates
            logger.setLevel(former)


def entries_of(formatter: Any) -> list[Any]:
    assert PAGE.request is not None
    return [formatter.crawled(PAGE.request, PAGE, SPIDER), formatter.scraped({"title": "t"}, PAGE, SPIDER)]


@pytest.mark.parametrize("level", [logging.INFO, logging.ERROR])
def test_page_has_no_entry_that_no_handler_takes(level: int) -> None:
    """Nor has an item."""
    with handling("", level):
        assert entries_of(LogFormatter()) == [None, None]


@pytest.mark.parametrize("level", [logging.DEBUG, logging.NOTSET])
def test_page_has_scrapys_entry_if_a_handler_takes_it(level: int) -> None:
    """So has an item, whether the handler is on the root or nearer."""
    for name in ("", "scrapy"):
        with handling(name, level):
            assert entries_of(LogFormatter()) == entries_of(ScrapysFormatter())


def test_derived_class_gets_the_entry_to_change() -> None:
    """A project may log its pages at INFO."""

    class Louder(LogFormatter):
        def crawled(self, request: Request, response: Any, spider: Spider) -> Any:
            return {**super().crawled(request, response, spider), "level": logging.INFO}

    with handling("", logging.INFO):
        assert entries_of(Louder())[0]["level"] == logging.INFO


def test_logger_is_heard_through_those_above_it_until_one_does_not_propagate() -> None:
    """As `logging` passes records on."""
    logger = logging.getLogger("scrapy.core.engine")
    with handling("", logging.DEBUG):
        assert is_heard(logger, logging.DEBUG)
        logging.getLogger("scrapy.core").propagate = False
        assert not is_heard(logger, logging.DEBUG)
    with handling("scrapy.core.engine", logging.DEBUG):
        assert is_heard(logger, logging.DEBUG)
        logger.setLevel(logging.INFO)
        assert not is_heard(logger, logging.DEBUG)
        assert is_heard(logger, logging.INFO)


@pytest.mark.parametrize(("given_up", "level"), [("ERROR", logging.ERROR), ("DEBUG", logging.DEBUG), (30, 30)])
def test_page_that_cannot_be_fetched_has_the_level_of_those_that_were_given_up(given_up: Any, level: int) -> None:
    """An error that is not the host's remains one, whatever the level."""
    formatter = LogFormatter.from_crawler(get_crawler(settings_dict={"RETRY_GIVE_UP_LOG_LEVEL": given_up}))
    assert PAGE.request is not None
    for error, wanted in ((DownloadTimeoutError(), level), (RuntimeError(), logging.ERROR)):
        assert formatter.download_error(Failure(error), PAGE.request, SPIDER)["level"] == wanted
