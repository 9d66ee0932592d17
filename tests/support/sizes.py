"""How many examples hypothesis tries: as many as a test says, and ten times those with `--hypothesis-profile=large`."""

from __future__ import annotations

from hypothesis import settings

LARGE = "large"


def examples(count: int) -> int:
    """The number that a test asks for, in the profile of this run."""
    return 10 * count if settings.get_current_profile_name() == LARGE else count
