from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes) -> Any:
    """Return the value of a text, or raise ValueError, also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
