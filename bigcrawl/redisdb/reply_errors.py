from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from redis import exceptions as errors

from bigcrawl.exceptions import (
    BigcrawlError,
    ConfigError,
    ContractError,
    OwnershipLostError,
    RewoundError,
    TransientStoreError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

# Replies of a server that cannot accept writes now; versions of redis-py differ in their exceptions.
_PASSING = (
    *("MISCONF", "OOM", "LOADING", "READONLY", "MASTERDOWN"),
    *("CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS"),
)
_PASSING_ERRORS = (
    errors.ReadOnlyError,
    errors.OutOfMemoryError,
    errors.MasterDownError,
    errors.ClusterDownError,
    errors.TryAgainError,
)
_MAKE_ROOM = (
    "make room on the disk of its directory, which `redis-cli CONFIG GET dir` names (an embedded server's is `redis` "
    "in the crawl's state directory)"
)
_CHECK = "check that it runs, and BIGCRAWL_REDIS_URL"
_NOT_PERMITTED_IN_SCRIPT = ("ACL failure in script", "The user executing the script can't")


class RedisRestartedError(RewoundError):
    """The server's run id changed: it may have forgotten its last second."""


class RedisRefusedError(TransientStoreError):
    """The server accepts no writes now. The call was not carried out and may be repeated."""


@contextmanager
def translating_errors() -> Iterator[None]:
    try:
        yield
    except errors.RedisError as error:
        raise _bigcrawl_error_of(error) from error
    except (OSError, TimeoutError) as error:
        raise TransientStoreError(f"Redis does not answer: {error}; {_CHECK}") from error


def _bigcrawl_error_of(error: errors.RedisError) -> BigcrawlError:
    # Over a unix socket, redis-py wraps the answer to the handshake.
    is_handshake = isinstance(error.__cause__, errors.ResponseError | errors.AuthenticationError)
    reply = error.__cause__ if is_handshake else error
    if isinstance(reply, errors.AuthenticationError | errors.AuthorizationError):
        return ConfigError(f"Redis refuses the login: {reply}; set user and password in BIGCRAWL_REDIS_URL")
    if isinstance(reply, errors.NoPermissionError) or str(reply).startswith(_NOT_PERMITTED_IN_SCRIPT):
        return ConfigError(
            f"Redis does not permit BIGCRAWL_REDIS_URL's user commands that bigcrawl needs: {reply}; `ACL LOG` of the "
            f"server names it, docs/operations.md has the rule"
        )
    if (reason := _tls_fault(error)) is not None:
        return ConfigError(f"no TLS connection to the Redis at BIGCRAWL_REDIS_URL: {reason}")
    if isinstance(reply, errors.ConnectionError | errors.TimeoutError):
        return TransientStoreError(f"Redis does not answer: {reply}; {_CHECK}")
    if str(reply).startswith(_PASSING) or isinstance(reply, _PASSING_ERRORS):
        remedy = f"; {_MAKE_ROOM}" if str(reply).startswith("MISCONF") else ""
        return RedisRefusedError(f"Redis cannot take writes now: {reply}{remedy}")
    if is_handshake:
        return ConfigError(f"Redis refuses the connection: {reply}; check BIGCRAWL_REDIS_URL")
    return ContractError(f"Redis refused a call: {reply}")


def is_cut_off(error: errors.ConnectionError) -> bool:
    """Return whether a server closed the connection during the greeting without a reason."""
    is_reply = type(error) is not errors.ConnectionError or isinstance(error.__cause__, errors.ResponseError)
    return not is_reply and not str(error).startswith("restarted:") and _tls_fault(error) is None


def leaves_doubt(result: object) -> bool:
    return isinstance(result, BigcrawlError) and not isinstance(result, OwnershipLostError | RedisRefusedError)


async def await_permitted(reply: Awaitable[Any], key: str) -> Any:
    try:
        return await reply
    except errors.NoPermissionError as error:
        raise errors.NoPermissionError(f"{error} (~{key})") from None


def _tls_fault(error: BaseException) -> str | None:
    from bigcrawl.redisdb.tls import tls_fault  # few crawls meet an error

    return tls_fault(error)
