"""How many examples hypothesis tries: by default a tenth of what a test says, all in a full run, or ten times that.

A small run tries the same examples each time: whether a change is taken must not depend on chance. The other profiles
draw new ones. `make test-fault` runs the large profile.
"""

from __future__ import annotations

from typing import Final

from hypothesis import settings

SMALL: Final = "small"
FULL: Final = "full"
LARGE: Final = "large"
EXAMPLES_MIN: Final = 5
_SMALLER: Final = 10
_LARGER: Final = 10
_USUAL: Final = 100  # hypothesis' own number


def register_profiles() -> None:
    """Let `--hypothesis-profile` choose one of the sizes. No test has a deadline: a busy machine takes its time."""
    for name in (SMALL, FULL, LARGE):
        settings.register_profile(name, deadline=None, max_examples=_sized(_USUAL, name), derandomize=name == SMALL)
    settings.load_profile(SMALL)


def examples(count: int) -> int:
    """The number that a test asks for, in the profile of this run."""
    return _sized(count, settings.get_current_profile_name())


def _sized(count: int, profile: str) -> int:
    if profile == SMALL:
        return min(count, max(EXAMPLES_MIN, count // _SMALLER))
    return _LARGER * count if profile == LARGE else count
