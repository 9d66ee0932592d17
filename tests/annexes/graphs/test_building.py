"""A graph on disk is the graph in memory."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bigcrawl.exceptions import ContractError
from bigcrawl_graphs import building
from bigcrawl_graphs.building import Edge, GraphBuilder, Node
from tests.support.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"http://{host}.example/{path}" for host in "ab" for path in ("", "x", "x/", "x!", "é")] + ["a", "b.c", "-"]
LINKS = st.lists(st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4)), max_size=12)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINKS, st.integers(1, 4))
def test_nodes_and_edges_are_those_that_were_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: list[tuple[str, list[str]]], together: int
) -> None:
    """In order and counted, however little memory there is."""
    monkeypatch.setattr(building, "_TOGETHER_MAX", together)
    with closing(GraphBuilder(tmp_path, bytes_max=200)) as graph:
        for source, targets in added:
            graph.add(source, targets)
        nodes = list(graph.nodes())
        edges = list(graph.edges())
    names = sorted({name for source, targets in added for name in (source, *targets)}, key=str.encode)
    sources = {source for source, _ in added}
    assert nodes == [Node(number, name, name in sources) for number, name in enumerate(names)]
    counts = Counter((names.index(source), names.index(target)) for source, targets in added for target in targets)
    assert edges == [Edge(*ends, links) for ends, links in sorted(counts.items())]
    assert graph.node_count == len(names)
    assert list(tmp_path.iterdir()) == []


def test_edges_come_after_nodes(tmp_path: Path) -> None:
    """Their numbers are needed."""
    with closing(GraphBuilder(tmp_path)) as graph:
        graph.add("a", ["b"])
        with pytest.raises(ContractError):
            list(graph.edges())
