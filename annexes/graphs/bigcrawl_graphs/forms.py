"""The file formats of a graph.

**webgraph**, the ASCII form of WebGraph (LAW): ``NAME.graph-txt`` has the number of nodes in its first line, and then a
line for each node with the numbers of its successors, ascending and separated by blanks. ``NAME.nodes`` has the name of
each node, one per line.

**parquet**: ``NAME-nodes.parquet`` has a row for each node: `node` (int64), `name`, `has_page` (whether its page is
stored). ``NAME-edges.parquet`` has one for each edge: `source`, `target` (int64), and the number of `links`.
"""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from bigcrawl.exceptions import ConfigError
from bigcrawl.warc.files import OsFiles, written_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bigcrawl_graphs.building import Edge, GraphBuilder, Node

WEBGRAPH: Final = "webgraph"
PARQUET: Final = "parquet"
FORMS: Final = (WEBGRAPH, PARQUET)
_ROWS: Final = 1 << 16  # per row group, and in memory


class Form(Protocol):
    """A graph writer: takes all nodes, then all edges, in their order. Raises OSError."""

    def add_node(self, node: Node) -> None: ...

    def begin_edges(self, nodes: int) -> None:
        """Start the edges; `nodes` is the number of nodes added."""

    def add_edge(self, edge: Edge) -> None: ...

    def end(self) -> None: ...


def check_forms(forms: Sequence[str]) -> None:
    if PARQUET in forms and importlib.util.find_spec("pyarrow") is None:
        raise ConfigError('Parquet needs the package pyarrow, which is missing: pip install "bigcrawl[parquet]"')


def file_names(name: str, form: str) -> tuple[str, str]:
    if form == PARQUET:
        return f"{name}-nodes.parquet", f"{name}-edges.parquet"
    return f"{name}.nodes", f"{name}.graph-txt"


def write_graph(graph: GraphBuilder, directory: Path, name: str, forms: Sequence[str], mode: int) -> int:
    """Write a graph in each of the forms; return the number of edges. A failure leaves each file new or unchanged."""
    edges = 0
    with ExitStack() as stack:
        writers = [stack.enter_context(_open_form(form, directory, name, mode)) for form in forms]
        for node in graph.nodes():
            for writer in writers:
                writer.add_node(node)
        for writer in writers:
            writer.begin_edges(graph.node_count)
        for edge in graph.edges():
            edges += 1
            for writer in writers:
                writer.add_edge(edge)
        for writer in writers:
            writer.end()
    return edges


@contextmanager
def _open_form(form: str, directory: Path, name: str, mode: int) -> Iterator[Form]:
    nodes, edges = (directory / file for file in file_names(name, form))
    files = OsFiles(mode)
    with written_whole(edges, files) as edges_file, written_whole(nodes, files) as nodes_file:
        if form == WEBGRAPH:
            yield _WebGraph(nodes_file, edges_file)
            return
        tables = _ParquetForm(nodes_file, edges_file)
        try:
            yield tables
        finally:
            tables.close()


class _WebGraph:
    def __init__(self, nodes: Any, edges: Any) -> None:
        self._nodes = nodes
        self._edges = edges
        self._count = 0
        self._at = 0
        self._is_begun = False  # whether this node's line has a number

    def add_node(self, node: Node) -> None:
        self._nodes.write(node.name.encode() + b"\n")

    def begin_edges(self, nodes: int) -> None:
        self._count = nodes
        self._edges.write(b"%d\n" % nodes)

    def add_edge(self, edge: Edge) -> None:
        self._go_to(edge.source)
        self._edges.write(b" %d" % edge.target if self._is_begun else b"%d" % edge.target)
        self._is_begun = True

    def end(self) -> None:
        self._go_to(self._count)

    def _go_to(self, node: int) -> None:
        if node > self._at:
            self._edges.write(b"\n" * (node - self._at))
            self._at, self._is_begun = node, False


class _ParquetForm:
    def __init__(self, nodes: Any, edges: Any) -> None:
        import pyarrow as pa

        self._nodes = _ParquetTable(nodes, [("node", pa.int64()), ("name", pa.string()), ("has_page", pa.bool_())])
        self._edges = _ParquetTable(edges, [("source", pa.int64()), ("target", pa.int64()), ("links", pa.int64())])

    def add_node(self, node: Node) -> None:
        self._nodes.add(node)

    def begin_edges(self, nodes: int) -> None:
        self._nodes.end()

    def add_edge(self, edge: Edge) -> None:
        self._edges.add(edge)

    def end(self) -> None:
        self._edges.end()

    def close(self) -> None:
        """Close the tables, complete or not; otherwise they would write to closed files later."""
        self._nodes.close()
        self._edges.close()


class _ParquetTable:
    def __init__(self, file: Any, columns: list[tuple[str, Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = pa.schema(columns)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._pass_rows()

    def end(self) -> None:
        self._pass_rows()
        self._writer.close()

    def close(self) -> None:
        with suppress(OSError):
            self._writer.close()

    def _pass_rows(self) -> None:
        import pyarrow as pa

        if self._rows:
            columns = [
                pa.array(values, kind.type)
                for values, kind in zip(zip(*self._rows, strict=True), self._schema, strict=True)
            ]
            self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))
        self._rows = []
