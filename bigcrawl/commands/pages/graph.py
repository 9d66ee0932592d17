"""`scrapy frontier graph DIRECTORY`."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.graphs.building import GraphBuilder
from bigcrawl.graphs.forms import FORMS, WEBGRAPH, check_forms, file_names, write_graph
from bigcrawl.graphs.links import LinkReader
from bigcrawl.politeness.robots_policy import agent_token
from bigcrawl.project_settings import DOWNLOAD_MAXSIZE
from bigcrawl.stored.catalogue import URL_BYTES_MAX, read_catalogue
from bigcrawl.stored.files import source_files
from bigcrawl.stored.pages import PageReader, UnreadablePageError
from bigcrawl.url.canonical import canonicalize, host_of
from bigcrawl.url.domain import PublicSuffixes
from bigcrawl.warc.files import locked_directory

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.stored.catalogue import Catalogue

PAGES, HOSTS, PLDS = "pages", "hosts", "plds"
KINDS: Final = (PAGES, HOSTS, PLDS)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--of", choices=KINDS, nargs="+", default=KINDS, help="which graphs; default: all three")
    parser.add_argument(
        "--as", dest="forms", choices=FORMS, nargs="+", default=(WEBGRAPH,), help="in which form; default: webgraph"
    )


def graph(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the graphs of stored pages: those of BIGCRAWL_SOURCE, or else of BIGCRAWL_WARC_DIR.

    After an error, files of an earlier call are unchanged.
    """
    check_forms(opts.forms)
    directory = Path(words[0])
    catalogue = _catalogue(config)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be created as a directory: {error.strerror}") from error
    try:
        with locked_directory(directory) as is_ours:
            if not is_ours:
                raise ConfigError(f"another scrapy frontier graph is at work in {directory}; wait, or name another")
            return _written(config, directory, catalogue, opts)
    except OSError as error:
        raise TransientStoreError(
            f"{directory} cannot be written: {error.strerror}; sorting takes some 100 bytes a link there, and no file "
            "of an earlier call has changed"
        ) from error


def _catalogue(config: Config) -> Catalogue:
    pattern = config.source.pattern or str(config.crawl.warc_dir or "")
    if not pattern:
        raise ConfigError("say where the pages are: -s BIGCRAWL_SOURCE='warc/*.warc.gz'")
    return read_catalogue(source_files(pattern), config.source.until)


def _written(config: Config, directory: Path, catalogue: Catalogue, opts: argparse.Namespace) -> Result:
    kinds = list(dict.fromkeys(opts.of))
    forms = list(dict.fromkeys(opts.forms))
    with ExitStack() as stack:
        graphs = {kind: stack.enter_context(closing(GraphBuilder(directory))) for kind in kinds}
        pages, unreadable = _fill(config, catalogue, graphs, stack)
        found: dict[str, dict[str, Any]] = {}
        for kind, one in graphs.items():
            edges = write_graph(one, directory, kind, forms, config.crawl.warc_mode)
            files = [str(directory / file) for form in forms for file in file_names(kind, form)]
            found[kind] = {"nodes": one.node_count, "edges": edges, "files": files}
    data = {"pages": pages, "unreadable": unreadable, "graphs": found}
    lines = [f"{kind}: {one['nodes']:,} nodes, {one['edges']:,} edges" for kind, one in found.items()]
    lines += [f"  {file}" for one in found.values() for file in one["files"]]
    lines += [f"{len(unreadable):,} pages cannot be read, first of them: {unreadable[0]}"] if unreadable else []
    lines.append(f"from {pages:,} stored pages")
    return Result(data, "\n".join(lines), 1 if unreadable else 0)


def _fill(
    config: Config, catalogue: Catalogue, graphs: dict[str, GraphBuilder], stack: ExitStack
) -> tuple[int, list[str]]:
    """Add the links of all pages except robots.txt. Return the number of pages, and the errors of unreadable ones."""
    reader = stack.enter_context(closing(PageReader(catalogue, DOWNLOAD_MAXSIZE)))
    links = LinkReader(
        agent_token(config.politeness.agent), DOWNLOAD_MAXSIZE, obeys_nofollow=config.politeness.obey_nofollow
    )
    pld_of = PublicSuffixes.bundled(private=config.crawl.private_suffixes).pld
    is_page = catalogue.pages_but_robots()
    pages, unreadable = 0, []
    for rank in range(len(catalogue)):
        if not is_page[rank]:
            continue
        try:
            page = reader.read(catalogue.place(rank))
        except UnreadablePageError as error:
            unreadable.append(str(error))
            continue
        pages += 1
        url = canonicalize(page.url, URL_BYTES_MAX)
        targets = links.links(page, url)
        if PAGES in graphs:
            graphs[PAGES].add(url, targets)
        host, hosts = host_of(url), [host_of(target) for target in targets]
        if HOSTS in graphs:
            graphs[HOSTS].add(host, [other for other in hosts if other != host])
        if PLDS in graphs:
            pld = pld_of(host)
            plds = map(pld_of, hosts)
            graphs[PLDS].add(pld, [other for other in plds if other != pld])
    return pages, unreadable
