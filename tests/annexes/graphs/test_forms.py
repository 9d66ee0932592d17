"""Graphs are written whole, in forms that others read."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_graphs import forms
from bigcrawl_graphs.building import GraphBuilder
from bigcrawl_graphs.forms import FORMS, PARQUET, WEBGRAPH, check_forms, write_graph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ADDED = [("b", ["d", "a", "d"]), ("e", ["e"]), ("a", [])]


def written(
    directory: Path, chosen: Sequence[str] = (WEBGRAPH,), added: Sequence[tuple[str, list[str]]] = ADDED
) -> int:
    with closing(GraphBuilder(directory)) as graph:
        for source, targets in added:
            graph.add(source, targets)
        return write_graph(graph, directory, "g", chosen, 0o640)


def test_webgraph_has_a_line_for_each_node(tmp_path: Path) -> None:
    """The number of nodes, then the successors of each, ascending; a node without any has an empty line."""
    assert written(tmp_path, [WEBGRAPH]) == 3
    assert (tmp_path / "g.graph-txt").read_text() == "4\n\n0 2\n\n3\n"
    assert (tmp_path / "g.nodes").read_text() == "a\nb\nd\ne\n"
    assert (tmp_path / "g.nodes").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.graph-txt", "g.nodes"]


@pytest.mark.system
def test_parquet_has_a_row_for_each_node_and_edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how many links make an edge, and whether the node's own page is stored; in several row groups."""
    import pyarrow.parquet as pq

    monkeypatch.setattr(forms, "_ROWS", 2)
    assert written(tmp_path, [PARQUET]) == 3
    nodes, edges = (pq.read_table(tmp_path / f"g-{what}.parquet") for what in ("nodes", "edges"))
    assert nodes.to_pydict() == {
        "node": [0, 1, 2, 3],
        "name": ["a", "b", "d", "e"],
        "has_page": [True, True, False, True],
    }
    assert edges.to_pydict() == {"source": [1, 1, 3], "target": [0, 2, 3], "links": [1, 2, 1]}


@pytest.mark.system
def test_empty_graph_is_written_too(tmp_path: Path) -> None:
    """A source without pages."""
    import pyarrow.parquet as pq

    assert written(tmp_path, FORMS, []) == 0
    assert (tmp_path / "g.graph-txt").read_text() == "0\n"
    assert pq.read_table(tmp_path / "g-edges.parquet").num_rows == 0


def test_files_of_an_earlier_call_stay_if_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing half-written takes a name."""
    written(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(forms._WebGraph, "add_edge", full)
    with pytest.raises(OSError, match="No space"):
        written(tmp_path, added=[("x", ["y"])])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_form_that_needs_a_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And which extra brings it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    check_forms([WEBGRAPH])
    with pytest.raises(ConfigError, match=r"bigcrawl\[parquet\]"):
        check_forms([PARQUET])
