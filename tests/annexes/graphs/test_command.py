"""`scrapy frontier graph`: the graphs of stored pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.running import parse_action, run_action
from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl_graphs import command, forms
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.commands.result import Result

A, B, C = "http://www.a.example/", "http://a.example/", "http://b.example/"
BODY = f'<a href=/x>x</a><a href="{B}">b</a><a href="{C}">c</a><a href="{C}">c</a>'.encode()


def asked(directory: Path, *words: str, **settings: str) -> Result:
    config = read_config({"BIGCRAWL_WARC_DIR": str(directory), **settings})
    return run_action(config, "graph", parse_action("graph", list(words)))


@pytest.mark.system
def test_graphs_of_pages_hosts_and_plds_are_written(tmp_path: Path) -> None:
    """Hosts and PLDs without links to themselves; robots.txt is no page."""
    import pyarrow.parquet as pq

    stored(tmp_path / "warc", page(f"{A}robots.txt"), page(A, BODY), page(B, BODY))
    to = tmp_path / "graphs"
    found = asked(tmp_path / "warc", str(to), "--as", "webgraph", "parquet")
    assert found.status == 0
    assert found.data["pages"] == 2
    assert {kind: (one["nodes"], one["edges"]) for kind, one in found.data["graphs"].items()} == {
        "pages": (5, 6),
        "hosts": (3, 3),
        "plds": (2, 1),
    }
    assert (to / "plds.nodes").read_text() == "a.example\nb.example\n"
    assert (to / "plds.graph-txt").read_text() == "2\n1\n\n"
    assert (to / "hosts.nodes").read_text() == "a.example\nb.example\nwww.a.example\n"
    assert (to / "hosts.graph-txt").read_text() == "3\n1\n\n0 1\n"
    assert pq.read_table(to / "plds-edges.parquet").to_pydict() == {"source": [0], "target": [1], "links": [2]}
    assert sorted(path.name for path in to.iterdir() if path.name.startswith("pages")) == [
        "pages-edges.parquet",
        "pages-nodes.parquet",
        "pages.graph-txt",
        "pages.nodes",
    ]


def test_pages_of_a_pattern_until_a_time(tmp_path: Path) -> None:
    """As for spiders."""
    stored(tmp_path / "other", page(A, BODY, 0), page(A, b"", 3600))
    settings = {"BIGCRAWL_SOURCE": str(tmp_path / "other" / "*.gz"), "BIGCRAWL_SOURCE_TIME": "202311142213"}
    found = asked(tmp_path / "none", str(tmp_path / "to"), "--of", "pages", **settings)
    assert found.data["graphs"].keys() == {"pages"}
    assert found.data["graphs"]["pages"]["edges"] == 3


def test_pages_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """The others are there; the exit status is 1."""
    path = stored(tmp_path / "warc", page(A, BODY), page(B, BODY))
    path.write_bytes(path.read_bytes()[:-600])
    found = asked(tmp_path / "warc", str(tmp_path / "to"))
    assert (found.status, found.data["pages"], len(found.data["unreadable"])) == (1, 1, 1)
    assert "1 pages cannot be read, first of them" in found.text


def test_what_is_wrong_is_told_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pages, no directory, a full disk."""
    with pytest.raises(ConfigError, match="there is no such file"):
        asked(tmp_path / "none", str(tmp_path / "to"))
    with pytest.raises(ConfigError, match="-s BIGCRAWL_SOURCE"):
        asked(tmp_path, str(tmp_path / "to"), BIGCRAWL_WARC_DIR="")
    stored(tmp_path / "warc", page(A, BODY))
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be created as a directory"):
        asked(tmp_path / "warc", str(tmp_path / "file" / "to"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(forms._WebGraph, "begin_edges", full)
    with pytest.raises(TransientStoreError, match=r"No space left on device; sorting takes"):
        asked(tmp_path / "warc", str(tmp_path / "to"))
    assert list((tmp_path / "to").iterdir()) == []


def test_two_calls_at_once_into_one_directory_are_one_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second says so and leaves the first one's files alone; into another directory it writes."""
    stored(tmp_path / "warc", page(A, BODY))
    write, to, told = forms.write_graph, tmp_path / "to", []

    def write_and_ask_again(*args: Any) -> int:
        monkeypatch.setattr(command, "write_graph", write)
        with pytest.raises(ConfigError, match=f"another scrapy frontier graph is running in {to}; wait"):
            asked(tmp_path / "warc", str(to))
        told.append(asked(tmp_path / "warc", str(tmp_path / "other")).status)
        return write(*args)

    monkeypatch.setattr(command, "write_graph", write_and_ask_again)
    assert (asked(tmp_path / "warc", str(to)).status, told) == (0, [0])
    files = [{path.name: path.read_bytes() for path in directory.iterdir()} for directory in (to, tmp_path / "other")]
    assert files[0] == files[1]
