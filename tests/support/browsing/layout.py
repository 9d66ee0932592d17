"""Faults of a page's layout, found in the browser: text on text, text that is cut, a page wider than its window."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.browsing.lighthouse import lighthouse_score, rules_to_run

PROJECT: Final = Path(__file__).resolve().parents[3]
AXE: Final = PROJECT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

_FAULTS: Final = """
const shown = (element) => element.checkVisibility({opacityProperty: true, visibilityProperty: true})
    && !element.closest(".hidden, .skip, dialog, details:not([open]) > :not(summary), thead");
const name = (element) => `${element.tagName.toLowerCase()}${element.id && "#" + element.id}.${element.className}: `
    + element.textContent.trim().slice(0, 40);
const faults = [];
const root = document.documentElement;
if (root.scrollWidth > root.clientWidth) faults.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
const boxes = [];
for (const element of document.querySelectorAll("body *")) {
  if (!shown(element) || element.closest("svg")) continue;
  const style = getComputedStyle(element);
  const clips = style.overflowX === "hidden" || style.overflowX === "clip";
  const isCut = clips && element.scrollWidth > element.clientWidth + 1;
  if (isCut && !element.closest(".treemap, .plot")) faults.push(`cut: ${name(element)}`);
  const around = element.getBoundingClientRect();
  const isOutside = around.width && (around.right > root.clientWidth + 1 || around.left < -1);
  if (isOutside && !element.closest(".lines-list, .numbers")) faults.push(`outside: ${name(element)}`);
  if (element.closest(".lines-list, .numbers, .treemap, #done")) continue; // these scroll, or hide what has no room
  for (const node of element.childNodes) {
    if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) boxes.push({box, element});
  }
}
boxes.sort((one, other) => one.box.top - other.box.top);
for (let at = 0; at < boxes.length; at += 1) {
  for (let next = at + 1; next < boxes.length && boxes[next].box.top < boxes[at].box.bottom - 3; next += 1) {
    const [one, other] = [boxes[at].box, boxes[next].box];
    const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (wide > 2 && high > 3) faults.push(`overlap: ${name(boxes[at].element)} | ${name(boxes[next].element)}`);
  }
}
return [...new Set(faults)].slice(0, 20);
"""
_AXE: Final = """
const done = arguments[arguments.length - 1];
const ids = (rules) => rules.map(({id}) => id);
axe.run(document, {rules: arguments[0], resultTypes: ["violations"]}).then((found) => done({
  ids: {passes: ids(found.passes), violations: ids(found.violations), incomplete: ids(found.incomplete)},
  violations: found.violations.map(({id, impact, nodes}) =>
    ({id, impact, where: nodes.slice(0, 3).map((node) => node.html.slice(0, 120))})),
}));
"""


_SHIFT: Final = """
const done = arguments[arguments.length - 1];
let sum = 0;
new PerformanceObserver((list) => list.getEntries().forEach((each) => { sum += each.value; }))
    .observe({type: "layout-shift", buffered: true});
setTimeout(() => done(sum), 200);
"""


class Accessibility(NamedTuple):
    """How many of axe's rules a page keeps, those that it breaks, and the score that Lighthouse would give it."""

    passed: int
    violations: list[dict[str, Any]]
    score: float


def layout_faults(browser: Any) -> list[str]:
    found: list[str] = browser.execute_script(_FAULTS)
    return found


def layout_shift(browser: Any) -> float:
    """How far what is shown has moved since the page was loaded: the sum of Cumulative Layout Shift."""
    return float(browser.execute_async_script(_SHIFT))


def accessibility(browser: Any) -> Accessibility:
    """Run axe-core with all rules that Lighthouse weighs."""
    if not AXE.exists():
        subprocess.run([PROJECT / "scripts" / "install_axe"], check=True)
    browser.execute_script(AXE.read_text("utf-8"))
    found = browser.execute_async_script(_AXE, rules_to_run())
    return Accessibility(len(found["ids"]["passes"]), found["violations"], lighthouse_score(found["ids"]))
