"""`python -m benchmarks.page_table`: how long questions take that Parquet files of many pages answer, and their bytes.

Makes pages as a broad crawl has them: hosts and PLDs by a power law, addresses of some 70 characters, no two alike,
random digests, and links from pages of the same host. Each file has as many pages as a WARC file of 1 GiB. All rows go
through the classes that index WARC files; the lines of CDXJ are made of the first file only, which is enough to measure
bytes. DuckDB then answers questions over all files; each answer is checked against what was made. Prints CPU time a
page, bytes a page, and seconds a question, the first time and the best of three. Promised are 500 bytes a page for both
indexes, and seconds for pages by PLD; the exit status is 1 if that was missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import duckdb

from benchmarks.crawl.report import aligned, say
from bigcrawl.page_index.cdxj import CdxjIndex
from bigcrawl.page_index.page_records import PageRecord
from bigcrawl.page_index.parquet import ParquetIndex
from bigcrawl.url.domain import PublicSuffixes

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTES_PROMISED: Final = 500  # a page, of both indexes
SECONDS_PROMISED: Final = 10.0  # for pages by PLD
QUESTIONS: Final = {
    "pages by PLD": "SELECT pld, count(*) AS n FROM pages GROUP BY pld ORDER BY n DESC, pld",
    "outcomes": "SELECT outcome, count(*) AS n FROM pages GROUP BY outcome ORDER BY n DESC",
    "bytes by media type": "SELECT type, sum(length) AS n FROM pages GROUP BY type ORDER BY n DESC",
    "slowest PLDs": "SELECT pld, median(fetch_ms) AS n FROM pages GROUP BY pld ORDER BY n DESC LIMIT 10",
    "payloads stored twice": "SELECT count(*) - count(DISTINCT digest) FROM pages",
    "one URL": "SELECT filename, \"offset\" FROM pages WHERE url = '{url}'",
}
_WORDS: Final = tuple(
    "about archive article blog category contact data en event forum help index item list media news".split()  # noqa: SIM905
)
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_SERVERS: Final = (b"nginx", b"Apache/2.4.57 (Debian)", b"cloudflare", b"Microsoft-IIS/10.0", b"LiteSpeed")
_TYPES: Final = (b"text/html; charset=utf-8", b"text/html", b"application/pdf", b"application/json")


class MadePages:
    """Pages that are made one after another, and what there is of them."""

    def __init__(self, plds: int, seed: int) -> None:
        self._dice = Random(seed)
        self._plds = plds
        self._sequence = 0
        self._suffixes = PublicSuffixes.bundled()
        self.by_pld: Counter[str] = Counter()
        self.last_url = ""

    def records(self, count: int) -> Iterator[PageRecord]:
        """Yield so many more."""
        dice, offset = self._dice, 500
        for _ in range(count):
            self._sequence += 1
            number = self._sequence
            rank = min(int(dice.paretovariate(0.6)), self._plds)
            pld = f"site{rank}.{('com', 'de', 'co.uk', 'org')[rank % 4]}"
            host = f"{('www', 'www', 'blog', 'shop')[dice.randrange(4)]}.{pld}"
            words = "/".join(dice.choices(_WORDS, k=3))
            url = f"https://{host}/{words}/{number:08d}-{dice.choice(_WORDS)}.html"
            parent = f"https://{host}/{words}/"
            size = 300 + int(dice.expovariate(1 / 5000))
            seconds = 1_790_000_000 + number // 300
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
            fields = {
                b"warc-type": b"response",
                b"warc-target-uri": url.encode(),
                b"warc-date": f"{stamp}.{number % 1000:03d}Z".encode(),
                b"warc-payload-digest": b"sha1:" + "".join(dice.choices(_ALPHABET, k=32)).encode(),
                b"warc-ip-address": b"203.%d.%d.%d" % (rank % 223, rank // 223 % 256, rank % 7),
            }
            http = {b"content-type": _TYPES[rank % 4 if rank % 9 == 0 else 0], b"server": _SERVERS[rank % 5]}
            notes = {
                b"via": parent.encode(),
                b"depth": b"%d" % dice.randrange(1, 9),
                b"priority": b"%d" % dice.randrange(-3, 4),
                b"fetchtimems": b"%d" % int(dice.expovariate(1 / 400)),
            }
            status = 200 if dice.random() < 0.9 else dice.choice((301, 404, 503))
            self.by_pld[pld] += 1
            self.last_url = url
            yield PageRecord(b"response", offset, size, fields, status, 4 * size, http, {}, notes)
            offset += size


def main() -> int:
    """Make, ask, and print; return the exit status."""
    given = _parser().parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        return _measure(Path(directory), given.rows, given.rows_a_file, MadePages(given.plds, given.seed))


def _measure(directory: Path, rows: int, rows_a_file: int, pages: MadePages) -> int:
    began_s = time.process_time()
    cdxj_bytes, cdxj_rows = 0, 0
    for number, first in enumerate(range(0, rows, rows_a_file)):
        count = min(rows_a_file, rows - first)
        name = f"crawl-20261125220500123-{number:05d}-node1"
        with (
            closing(ParquetIndex(directory, f"{name}.warc.gz")) as table,
            closing(CdxjIndex(directory, f"{name}.warc.gz")) as lines,
        ):
            for page in pages.records(count):
                table.add(page)
                if not number:
                    lines.add(page)
            with (directory / f"{name}.parquet").open("wb") as file:
                table.write(file)
            if not number:
                with (directory / f"{name}.cdxj").open("wb") as file:
                    lines.write(file)
                cdxj_bytes, cdxj_rows = (directory / f"{name}.cdxj").stat().st_size, count
    made_us = (time.process_time() - began_s) / rows * 1e6
    parquet_bytes = sum(path.stat().st_size for path in directory.glob("*.parquet")) / rows
    cdxj = cdxj_bytes / cdxj_rows
    say(f"{rows:,} pages of {len(pages.by_pld):,} PLDs; {made_us:.0f} us of CPU a page, to make it and its row")
    say(f"{parquet_bytes:.0f} bytes a page in Parquet, {cdxj:.0f} in CDXJ: {parquet_bytes + cdxj:.0f} together")
    asked = _ask(directory, rows, pages)
    for line in aligned(
        [("question", "first s", "best s"), *((q, f"{a:.2f}", f"{b:.2f}") for q, (a, b) in asked.items())]
    ):
        say(line)
    return int(parquet_bytes + cdxj > BYTES_PROMISED or asked["pages by PLD"][0] > SECONDS_PROMISED)


def _ask(directory: Path, rows: int, pages: MadePages) -> dict[str, tuple[float, float]]:
    """Return how long each question takes: the first time, and the best of three."""
    took = {}
    with duckdb.connect() as db:
        db.read_parquet(f"{directory}/*.parquet").create_view("pages")
        for question, text in QUESTIONS.items():
            times = []
            for _ in range(3):
                began_s = time.perf_counter()
                answer = db.execute(text.format(url=pages.last_url)).fetchall()
                times.append(time.perf_counter() - began_s)
            _check(question, answer, rows, pages)
            took[question] = times[0], min(times)
    return took


def _check(question: str, answer: list[tuple[object, ...]], rows: int, pages: MadePages) -> None:
    """Raise RuntimeError if an answer is not what was made."""
    match question:
        case "pages by PLD":
            is_right = dict(answer) == pages.by_pld  # type: ignore[arg-type]
        case "outcomes":
            is_right = sum(int(str(count)) for _, count in answer) == rows
        case "one URL":
            is_right = len(answer) == 1
        case _:
            is_right = bool(answer)
    if not is_right:
        raise RuntimeError(f"{question}: {answer[:5]}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_table", description=__doc__)
    add = parser.add_argument
    add("--rows", type=int, default=10_000_000, help="default 10,000,000")
    add("--rows-a-file", type=int, default=200_000, help="default 200,000")
    add("--plds", type=int, default=1_000_000, help="at most so many; default 1,000,000")
    add("--seed", type=int, default=7, help="of the dice; default 7")
    add("--directory", type=Path, default=None, help="where files are made, 1.5 GB of them; default: the temporary one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
