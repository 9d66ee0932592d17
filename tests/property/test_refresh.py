"""The two expressions that read a refresh against the steps of the HTML standard, one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.url.refresh import refresh_in

BLANKS = "\t\n\f\r "
PIECES = ["0", "5", ".", ";", ",", " ", "\n", "\v", "\u00a0", "url", "URL", "u", "Ur", "=", "'", '"', "/x", "é", "٣"]
CONTENTS = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


class Steps:
    """The standard's input and position."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    @property
    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    @property
    def rest(self) -> str:
        return self.text[self.at :]

    def skip(self, characters: str) -> str:
        start = self.at
        while self.here and self.here in characters:
            self.at += 1
        return self.text[start : self.at]

    def takes(self, characters: str) -> bool:
        found = bool(self.here) and self.here in characters
        self.at += found
        return found


def target_by_the_steps(content: str) -> str:
    """Shared declarative refresh steps 3 to 11; empty where they end without a URL."""
    steps = Steps(content)
    steps.skip(BLANKS)
    if not steps.skip("0123456789") and steps.here != ".":
        return ""
    steps.skip("0123456789.")
    if steps.here and steps.here not in ";," + BLANKS:
        return ""
    steps.skip(BLANKS)
    steps.takes(";,")
    steps.skip(BLANKS)
    whole = steps.rest
    if steps.takes("uU"):
        for letters in ("rR", "lL"):
            if not steps.takes(letters):
                return whole
        steps.skip(BLANKS)
        if not steps.takes("="):
            return whole
        steps.skip(BLANKS)
    quote = steps.here if steps.here in {"'", '"'} else ""
    steps.at += len(quote)
    return steps.rest.partition(quote)[0] if quote else steps.rest


@given(st.one_of(CONTENTS, CONTENTS.map("0;".__add__), CONTENTS.map("0;url=".__add__), st.text(max_size=20)))
def test_target_is_what_the_standards_steps_give(content: str) -> None:
    """Whatever the content is, both ways read the same reference, or none."""
    assert refresh_in(content).target == target_by_the_steps(content)
