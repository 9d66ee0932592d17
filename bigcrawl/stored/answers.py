from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.stored.catalogue import URL_BYTES_MAX, read_catalogue
from bigcrawl.stored.files import source_files
from bigcrawl.stored.pages import PageReader, UnreadablePageError
from bigcrawl.url.canonical import UrlError, canonicalize, host_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config
    from bigcrawl.stored.catalogue import StoredPlace
    from bigcrawl.stored.pages import StoredPage

_BODY_BYTES_MAX: Final = 1 << 30  # Scrapy's DOWNLOAD_MAXSIZE
_NOT_MODIFIED: Final = 304


class StoredAnswers:
    """The last answer of each URL to a GET, read when asked for. Memory: 45 bytes for each, and 16 for a host."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Read the indexes of WARC files, or files without one; a pattern may name a directory. Raises ConfigError."""
        paths = [path for pattern in patterns for path in source_files(pattern, "--warc")]
        self._catalogue = read_catalogue(list(dict.fromkeys(paths)), has_hosts=True)
        if not len(self):
            raise ConfigError(
                "--warc: there is no answer of a URL in the files; they are empty, or were compressed as a whole: "
                "`warcio recompress OLD NEW` makes a member of each record"
            )
        self._reader = PageReader(self._catalogue, _BODY_BYTES_MAX)

    def __len__(self) -> int:
        return len(self._catalogue)

    def answer(self, url: str) -> StoredPage | None:
        """Return the answer of a URL, None if none is stored. Raises BigcrawlError if its record cannot be read."""
        try:
            canonical = canonicalize(url, URL_BYTES_MAX)
        except UrlError:
            return None
        rank = self._catalogue.rank_of(canonical)
        if rank < 0:
            return None
        page = self._reader.read_page(self._catalogue.place_of_rank(rank))
        if page.method == "GET":
            return page
        for place in self._catalogue.answers(canonical):
            with suppress(UnreadablePageError):
                page = self._reader.read_page(place)
                if page.method == "GET" and page.status != _NOT_MODIFIED:
                    return page
        return None

    def server_of(self, host: str) -> str | None:
        """Return the address that a host had; "" if unknown, None if no answer of the host is stored."""
        place = self._catalogue.place_of_host(host)
        return None if place is None else self._address_at(place)

    def servers(self) -> Iterator[tuple[str, str]]:
        """Yield each host with its address, "" if unknown."""
        for place in self._catalogue.one_place_per_host():
            with suppress(UnreadablePageError, UrlError):
                page = self._reader.read_page(place)
                yield host_of(canonicalize(page.url, URL_BYTES_MAX)), page.ip

    def _address_at(self, place: StoredPlace) -> str:
        with suppress(UnreadablePageError):
            return self._reader.read_page(place).ip
        return ""


ANSWERS_MAX: Final = 100


def explain_stored(config: Config, url: str) -> dict[str, Any]:
    """Return the answers to a URL in the files of BIGCRAWL_SOURCE, last one first. Raises ConfigError."""
    catalogue = read_catalogue(source_files(config.source.pattern), config.source.until)
    reader = PageReader(catalogue, 0)
    try:
        spelled = canonicalize(url, URL_BYTES_MAX)
    except UrlError:
        spelled = ""  # such records are skipped
    given = catalogue.place_of_rank(rank) if spelled and (rank := catalogue.rank_of(spelled)) >= 0 else None
    places = list(islice(catalogue.answers(spelled), ANSWERS_MAX)) if spelled else []
    answers = [{**_answer_data(reader, place), "is_given": place == given} for place in places]
    reader.close()
    skipped = [
        {"file": str(skip.path), "offset": skip.offset, "problem": skip.why}
        for skip in catalogue.skips
        if skip.url in (url, spelled)
    ]
    return {"url": spelled or url, "answers": answers, "skipped": skipped, "skipped_records": catalogue.skipped}


def _answer_data(reader: PageReader, place: StoredPlace) -> dict[str, Any]:
    status, problem = None, None
    try:
        status = reader.read_page(place).status
    except UnreadablePageError as error:
        problem = f"{error.reason}: {error}"
    return {"file": str(place.path), "offset": place.offset, "bytes": place.size, "status": status, "problem": problem}
