"""A full-text index of the pages that the spider `searched` has fed, in SQLite's FTS5.

python -m crawls.search add search.db pages.jsonl
python -m crawls.search find search.db honey bees
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TABLES: Final = """
CREATE TABLE IF NOT EXISTS feeds (path TEXT PRIMARY KEY, bytes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS pages (id INTEGER PRIMARY KEY, url TEXT UNIQUE NOT NULL, time INTEGER NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (title, text);
"""
FOUND_MAX: Final = 10


def add_feed(index: sqlite3.Connection, feed: Path) -> int:
    """Add the lines that were written since the last call, all or none; return how many there were.

    A page gets the place of its older version, and one that is gone leaves. Several nodes have feeds of their own, so
    the newest version counts.
    """
    lines = 0
    with index:
        [(begin,)] = index.execute("SELECT coalesce(max(bytes), 0) FROM feeds WHERE path = ?", (str(feed.resolve()),))
        with feed.open("rb") as file:
            file.seek(begin)
            for line in file:
                if not line.endswith(b"\n"):  # it is still being written
                    break
                begin += len(line)
                lines += 1
                _put_page(index, **json.loads(line))
        index.execute("REPLACE INTO feeds VALUES (?, ?)", (str(feed.resolve()), begin))
    return lines


def _put_page(
    index: sqlite3.Connection, url: str, change: str, time: int, title: str = "", text: str = "", **_: object
) -> None:
    known = index.execute("SELECT id, time FROM pages WHERE url = ?", (url,)).fetchone()
    if known is not None and known[1] > time:
        return
    if known is not None:
        index.execute("DELETE FROM texts WHERE rowid = ?", (known[0],))
    page_id = known and known[0]
    [(page_id,)] = index.execute("REPLACE INTO pages VALUES (?, ?, ?) RETURNING id", (page_id, url, time))
    if change != "gone":
        index.execute("INSERT INTO texts (rowid, title, text) VALUES (?, ?, ?)", (page_id, title, text))


def find_pages(index: sqlite3.Connection, words: str) -> Iterator[tuple[str, str, str]]:
    """Yield URL, title and an extract of the best pages, by BM25."""
    yield from index.execute(
        "SELECT url, title, snippet(texts, 1, '[', ']', '...', 16) FROM texts JOIN pages ON pages.id = texts.rowid "
        "WHERE texts MATCH ? ORDER BY rank LIMIT ?",
        (words, FOUND_MAX),
    )


def main(words: Sequence[str]) -> int:
    if len(words) < 3 or words[0] not in ("add", "find"):
        sys.stderr.write(__doc__ or "")
        return 2
    action, name, *others = words
    with closing(sqlite3.connect(name)) as index:
        index.executescript(TABLES)
        try:
            if action == "add":
                lines = sum(add_feed(index, Path(feed)) for feed in others)
                sys.stdout.write(f"{lines} changes added to {name}\n")
                return 0
            for url, title, extract in find_pages(index, " ".join(others)):
                sys.stdout.write(f"{url}\n  {title}: {extract}\n")
        except (OSError, sqlite3.Error, ValueError) as error:
            sys.stderr.write(f"{' '.join(others)}: {error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
