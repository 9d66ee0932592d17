"""Steps as lines of a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_sampling.steps import LINE_CHARS_MAX, WalkStep, read_steps

STEP = WalkStep(3, 1, 5, (1 << 64) - 1, True, (7, 8), "http://a.example/")


def line(**changed: Any) -> str:
    return json.dumps({**STEP._asdict(), **changed})


def test_steps_are_read_as_they_were_written_and_once() -> None:
    """One that was fetched again after a crash counts the first time; empty lines are none."""
    assert read_steps([line(), "\n", line(url="again"), line(step=2, links=[])], "f") == [
        STEP,
        STEP._replace(step=2, links=()),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        "no JSON",
        "[]",
        "{}",
        line(walk="x"),
        line(links=[1, -1]),
        line(links=5),
        line(asked=1 << 64),
        line(step=True),
        "[" * 99_999,
        " " * LINE_CHARS_MAX + line(),
    ],
)
def test_line_that_is_no_step_is_named(bad: str) -> None:
    """With what to give."""
    with pytest.raises(ConfigError, match=r"line 2 of f .*the spider sample"):
        read_steps([line(), bad], "f")
