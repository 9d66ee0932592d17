"""Says which items of a feed kill -9 loses, and makes feeds continue an earlier run's file."""

from __future__ import annotations

import csv
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.extensions.feedexport import BlockingFeedStorage, FileFeedStorage, FTPFeedStorage, StdoutFeedStorage

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.extensions.feedexport import FeedSlot

logger = logging.getLogger(__name__)

_WRITTEN_AT_ONCE = (FileFeedStorage, StdoutFeedStorage)
_NAMED_BY_TIME = re.compile(r"%\((batch_)?time\)")


def durability_gap(storage: type, exporter: type, options: Mapping[str, Any]) -> str:
    """Return what a feed loses at kill -9, as text that follows its name; empty if nothing."""
    from scrapy import exporters  # and pydantic with them, which a crawl without feeds does not need

    if issubclass(storage, BlockingFeedStorage):
        return "is uploaded when the crawl stops: kill -9 loses all its items since the start"
    if not issubclass(storage, _WRITTEN_AT_ONCE):
        return f"is kept by {storage.__name__}, and whether its items outlive kill -9 is not known"
    if options.get("postprocessing"):
        return "is post-processed: kill -9 loses items that wait there, and later items might be unreadable"
    if issubclass(exporter, (exporters.JsonItemExporter, exporters.XmlItemExporter)):
        return "has all its items after kill -9, but is no valid document after that or a resume; jsonlines or csv is"
    item_by_item = (exporters.MarshalItemExporter, exporters.PickleItemExporter, exporters.PprintItemExporter)
    if not issubclass(exporter, (exporters.JsonLinesItemExporter, exporters.CsvItemExporter, *item_by_item)):
        return f"is written by {exporter.__name__}, and whether its items outlive kill -9 is not known"
    return ""


def empty_feed_file(slot: FeedSlot) -> None:
    """Empty the file of a feed that overwrites it. Later another node might have begun to write."""
    storage = slot.storage
    if isinstance(storage, FileFeedStorage) and "w" in storage.write_mode:
        path = Path(storage.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        storage.write_mode = "ab"


def go_on(slot: FeedSlot, *, alone: bool) -> None:
    """Make a feed about to be opened keep earlier items; raise ConfigError if it can only be replaced whole."""
    storage = slot.storage
    if isinstance(storage, FileFeedStorage):
        path, replaces = Path(storage.path), "w" in storage.write_mode
        storage.write_mode = "ab"
        if path.is_file() and path.stat().st_size:
            _append_to_feed(slot, path, replaces=replaces, alone=alone)
    elif isinstance(storage, BlockingFeedStorage):
        slot.store_empty = False
        if isinstance(storage, FTPFeedStorage):
            storage.overwrite = False
        elif not (_NAMED_BY_TIME.search(slot.uri_template) or slot.feed_options["uri_params"]):
            raise ConfigError(
                f"feed {slot.uri} would replace the items of the crawl's earlier runs: put %(time)s into its name, "
                f"or start the crawl from scratch with BIGCRAWL_FRESH=1"
            )


def _append_to_feed(slot: FeedSlot, path: Path, *, replaces: bool, alone: bool) -> None:
    slot.store_empty = False  # in some formats even an empty part has a header and a footer
    if replaces:
        logger.warning(
            "feed %(uri)s is not emptied, because the crawl is resumed: items are appended; BIGCRAWL_FRESH=1 starts "
            "both from scratch",
            {"uri": slot.uri},
        )
    from scrapy.exporters import CsvItemExporter, JsonLinesItemExporter

    exporter = slot.exporters[slot.format]
    if "postprocessing" in slot.feed_options or not issubclass(exporter, (JsonLinesItemExporter, CsvItemExporter)):
        return
    is_csv = issubclass(exporter, CsvItemExporter)
    if alone and (cut := cut_torn_line(path, quoted=is_csv)):
        logger.info(
            "feed %(uri)s ended within an item: its last %(cut)d bytes are removed, and the item's page is "
            "fetched again",
            {"uri": slot.uri, "cut": cut},
        )
    if is_csv and path.stat().st_size:
        _go_on_in_columns(slot, path)


def cut_torn_line(path: Path, *, quoted: bool) -> int:
    """Truncate a file to its last complete line; return the bytes cut off. If `quoted`, lines are as in CSV."""
    with path.open("rb+") as file:
        size = file.seek(-1, os.SEEK_END) + 1
        if file.read(1) == b"\n":
            return 0
        file.seek(0)
        end = at = quotes = 0
        for line in file:
            at += len(line)
            quotes += line.count(b'"') if quoted else 0
            if line.endswith(b"\n") and quotes % 2 == 0:
                end = at
        file.truncate(end)
    return size - end


def _go_on_in_columns(slot: FeedSlot, path: Path) -> None:
    """Omit the header, which the file has. Use the file's columns, unless the feed sets its own."""
    options = slot.feed_options
    if options["item_export_kwargs"]:  # the project's own CSV format
        return
    fields = options["fields"]
    if fields is None:
        with path.open(newline="", encoding=options["encoding"] or "utf-8") as file:
            fields = next(csv.reader(file))
    slot.feed_options = {**options, "fields": fields, "item_export_kwargs": {"include_headers_line": False}}
