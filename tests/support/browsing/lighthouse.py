"""Lighthouse's score of accessibility, made of the results of axe-core.

Lighthouse runs axe-core too, and its score is the share of the rules that the page keeps, weighted, among those that
apply. Weights and rules are those of Lighthouse 12.8, core/config/default-config.js.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCORE_MIN: Final = 95
_RULES: Final = {
    10: "aria-allowed-attr aria-hidden-body aria-required-attr aria-required-children aria-required-parent "
    "aria-valid-attr aria-valid-attr-value button-name duplicate-id-aria image-alt input-button-name input-image-alt "
    "meta-refresh meta-viewport video-caption",
    7: "accesskeys aria-command-name aria-conditional-attr aria-dialog-name aria-hidden-focus aria-input-field-name "
    "aria-meter-name aria-progressbar-name aria-prohibited-attr aria-roles aria-text aria-toggle-field-name "
    "aria-tooltip-name aria-treeitem-name bypass color-contrast definition-list dlitem document-title frame-title "
    "html-has-lang html-lang-valid label link-in-text-block link-name list listitem object-alt select-name tabindex "
    "target-size td-headers-attr th-has-data-cells valid-lang",
    3: "form-field-multiple-labels heading-order html-xml-lang-mismatch skip-link",
    1: "aria-allowed-role aria-deprecated-role image-redundant-alt table-duplicate-name",
}
WEIGHTS: Final = {rule: weight for weight, rules in _RULES.items() for rule in rules.split()}


def lighthouse_score(found: Mapping[str, Iterable[str]]) -> float:
    """Return the score, 0 to 100, of the ids of the rules of each kind of axe's results.

    A rule whose result is incomplete is one that a person must look at, and counts as kept.
    """
    broken = WEIGHTS.keys() & found["violations"]
    kept = (WEIGHTS.keys() & {*found["passes"], *found["incomplete"]}) - broken
    lost, won = (sum(WEIGHTS[rule] for rule in rules) for rules in (broken, kept))
    return round(100 * won / max(1, won + lost), 1)


def rules_to_run() -> dict[str, Any]:
    """Return those options of axe that also run Lighthouse's rules which axe leaves out by default."""
    return {rule: {"enabled": True} for rule in WEIGHTS}
