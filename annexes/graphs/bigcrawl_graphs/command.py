"""The command `scrapy frontier graph DIRECTORY`."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.pages.stored_links import StoredLinks
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.url.canonical import host_of
from bigcrawl.warc.files import locked_directory
from bigcrawl_graphs.building import GraphBuilder
from bigcrawl_graphs.forms import FORMS, WEBGRAPH, check_forms, file_names, write_graph

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

PAGES, HOSTS, PLDS = "pages", "hosts", "plds"
KINDS: Final = (PAGES, HOSTS, PLDS)


def graph_options(parser: argparse.ArgumentParser) -> None:
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
    with closing(StoredLinks(config)) as pages:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{directory} cannot be created as a directory: {error.strerror}") from error
        try:
            with locked_directory(directory) as is_ours:
                if not is_ours:
                    raise ConfigError(f"another scrapy frontier graph is running in {directory}; wait, or name another")
                return _write_graphs(pages, directory, config.crawl.warc_mode, opts)
        except OSError as error:
            raise TransientStoreError(
                f"{directory} cannot be written: {error.strerror}; sorting takes some 100 bytes a link there, and no "
                "file of an earlier call has changed"
            ) from error


def _write_graphs(pages: StoredLinks, directory: Path, mode: int, opts: argparse.Namespace) -> Result:
    forms = list(dict.fromkeys(opts.forms))
    with ExitStack() as stack:
        graphs = {kind: stack.enter_context(closing(GraphBuilder(directory))) for kind in dict.fromkeys(opts.of)}
        _fill_graphs(pages, graphs)
        found: dict[str, dict[str, Any]] = {}
        for kind, one in graphs.items():
            edges = write_graph(one, directory, kind, forms, mode)
            files = [str(directory / file) for form in forms for file in file_names(kind, form)]
            found[kind] = {"nodes": one.node_count, "edges": edges, "files": files}
    unreadable = pages.unreadable
    data = {"pages": pages.read, "unreadable": unreadable, "graphs": found}
    lines = [f"{kind}: {one['nodes']:,} nodes, {one['edges']:,} edges" for kind, one in found.items()]
    lines += [f"  {file}" for one in found.values() for file in one["files"]]
    lines += [f"{len(unreadable):,} pages cannot be read, first of them: {unreadable[0]}"] if unreadable else []
    lines.append(f"from {pages.read:,} stored pages")
    return Result(data, "\n".join(lines), 1 if unreadable else 0)


def _fill_graphs(pages: StoredLinks, graphs: dict[str, GraphBuilder]) -> None:
    """Add the links of all pages to the graphs, except links within the same host or PLD."""
    for url, targets in pages:
        if PAGES in graphs:
            graphs[PAGES].add(url, targets)
        names = [host_of(url), *map(host_of, targets)]
        if HOSTS in graphs:
            graphs[HOSTS].add(names[0], [name for name in names if name != names[0]])
        if PLDS in graphs:
            names = [*map(pages.pld_of, names)]
            graphs[PLDS].add(names[0], [name for name in names if name != names[0]])
