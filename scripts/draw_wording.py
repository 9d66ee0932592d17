"""Draws wording at random for a reader who does not know the code: `python -m scripts.draw_wording [SEED]`.

Prints 40 docstrings, 40 names, 20 messages and 10 passages of docs as Markdown. SEED is a commit's hash, that of HEAD
unless given, so anybody can draw the same again. docs/design/wording.md has the answers.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT: Final = Path(__file__).parents[1]
DRAWN: Final = {"Docstrings": 40, "Names": 40, "Messages": 20, "Passages": 10}
PASSAGE_WORDS_MIN: Final = 25
MESSAGE_WORDS_MIN: Final = 4
_LOGGING: Final = frozenset(("debug", "info", "warning", "error", "exception", "critical"))
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def main(seed: str) -> None:
    dice = random.Random(seed)
    print(f"Drawn with the seed {seed}.")
    for kind, found in _wording().items():
        print(f"\n## {kind}\n")
        for number, text in enumerate(dice.sample(sorted(set(found)), DRAWN[kind]), 1):
            print(f"{number}. {text}")


def _wording() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in DRAWN}
    for room in ("bigcrawl", "annexes"):
        for path in sorted((PROJECT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (*_DEFINITIONS, ast.Module)) and (words := ast.get_docstring(node)):
                    name = getattr(node, "name", path.stem)
                    found["Docstrings"].append(f"`{name}`: {' '.join(words.split())}")
                if isinstance(node, _DEFINITIONS) and not node.name.startswith("__"):
                    found["Names"].append(f"`{node.name}` (in `{path.relative_to(PROJECT)}`)")
                found["Messages"] += [f"`{text}`" for text in _messages(node)]
    for path in sorted((PROJECT / "docs").rglob("*.md")):
        found["Passages"] += [f"({path.name}) {text}" for text in _passages(path.read_text())]
    return found


def _messages(node: ast.AST) -> Iterator[str]:
    """Yield what is logged or raised here; a value that is filled in is `...`."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        arguments = node.exc.args
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOGGING:
        arguments = node.args[:1]
    else:
        return
    for argument in arguments:
        pieces = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        text = "".join(str(piece.value) if isinstance(piece, ast.Constant) else "..." for piece in pieces)
        if len(text.split()) >= MESSAGE_WORDS_MIN:
            yield " ".join(text.split())


def _passages(text: str) -> Iterator[str]:
    """Yield the paragraphs of a page without code, tables, lists and headings."""
    for block in re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n"):
        if block[:1].isalnum() and len(block.split()) >= PASSAGE_WORDS_MIN:
            yield " ".join(block.split())


if __name__ == "__main__":
    head = subprocess.run(("git", "rev-parse", "HEAD"), cwd=PROJECT, capture_output=True, text=True, check=True)
    main(sys.argv[1] if len(sys.argv) > 1 else head.stdout.strip())
