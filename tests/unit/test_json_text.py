"""JSON that others wrote is read in one place, where no text ends in more than a ValueError."""

from __future__ import annotations

import ast

import pytest

from bigcrawl.json_text import read_json
from tests.support.imports import annex_sources, package_sources, parsed

READ_APART = {"bigcrawl_foreign/unpickling.py", "bigcrawl_simweb/model/state.py"}  # in a process of its own; its own


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, b"\xff", "", "nothing", '{"a": 1'])
def test_text_that_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_json(text)
    assert len(str(caught.value)) < 200


def test_value_is_returned() -> None:
    assert read_json(b'{"a": [1, 2.5, null, "b"]}') == {"a": [1, 2.5, None, "b"]}


def test_json_is_read_nowhere_else() -> None:
    calls = {
        path
        for path, source in (package_sources() | annex_sources()).items()
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load")
    }
    assert calls == {"json_text.py", *READ_APART}
