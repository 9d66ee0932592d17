"""Tests of tables: all rows are one test, because collecting a row costs a worker more than running it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def each(names: str, rows: Iterable[Any], ids: Callable[[Any], object] = str) -> Callable[[Any], Any]:
    """Run a test with each row of a table as its arguments of these names, and tell all rows that fail.

    As `pytest.mark.parametrize`, but for marks; fixtures are made once for all rows.
    """
    wanted, table = [name.strip() for name in names.split(",")], list(rows)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(*args: Any, **fixtures: Any) -> None:
            failed = []
            for row in table:
                has_id = hasattr(row, "marks")  # a pytest.param
                values = row.values if has_id else row if len(wanted) > 1 else (row,)
                try:
                    test(*args, **fixtures, **dict(zip(wanted, values, strict=True)))
                except Exception as error:  # noqa: BLE001 - told below, with the others
                    error.add_note(f"row: {row.id if has_id else ids(row)}")
                    failed.append(error)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(table)} rows", failed)

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in wanted]
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        run.__module__ = test.__module__
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
