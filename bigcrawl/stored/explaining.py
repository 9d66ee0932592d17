from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.stored.catalogue import URL_BYTES_MAX, read_catalogue
from bigcrawl.stored.files import source_files
from bigcrawl.stored.pages import PageReader, UnreadablePageError
from bigcrawl.url.canonical import UrlError, canonicalize

if TYPE_CHECKING:
    from bigcrawl.config import Config
    from bigcrawl.stored.catalogue import StoredPlace

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
