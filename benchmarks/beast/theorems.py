"""Theorems 4 and 5 of IRLbot §6.2, per page: disk speed divided by pages a second."""

from __future__ import annotations


def alpha(pages: float, budget: float, plds: int) -> float:
    """Return alpha_N = max(1, N / (E[B] V)), equation 9: how often all budgets were used up."""
    return max(1.0, pages / (budget * plds))


def naive_bytes(pages: float, budget: float, plds: int, links: float, url_bytes: float) -> float:
    """Return 2 b (L - 1) alpha_N, equation 8: bytes read and written for the N-th page."""
    return 2 * url_bytes * (links - 1) * alpha(pages, budget, plds)


def beast_bytes(pages: float, budget: float, plds: int, links: float, url_bytes: float) -> float:
    """Return 2 b (2 alpha_N / (1 + alpha_N) (L - 1) + 1), equation 10."""
    a = alpha(pages, budget, plds)
    return 2 * url_bytes * (2 * a / (1 + a) * (links - 1) + 1)


def beast_bound(links: float, url_bytes: float) -> float:
    """Return 2 b (2 L - 1), what equation 10 never exceeds."""
    return 2 * url_bytes * (2 * links - 1)
