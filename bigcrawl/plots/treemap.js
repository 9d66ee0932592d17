// A treemap: boxes whose areas are in proportion to their values, as square as can be (Bruls, Huizing, van Wijk: Squarified Treemaps).
// A classic script, which defines `placeTiles`.
"use strict";
// eslint-disable-next-line no-unused-vars
const placeTiles = (() => {
  const BOX_PX = 9000; // for each box with a name

  /** Lay out `values`, descending, in a space. Returns for each {x, y, width, height}, in the space's units. */
  function squarify(values, width, height) {
    const whole = values.reduce((all, value) => all + value, 0);
    const areas = values.map((value) => (value * width * height) / whole);
    const boxes = [];
    let [x, y] = [0, 0];
    for (let first = 0; first < areas.length;) {
      const side = Math.min(width, height);
      let [end, sum] = [first, 0];
      while (end < areas.length) {
        const next = sum + areas[end];
        if (end > first && worst(areas[first], areas[end], next, side) > worst(areas[first], areas[end - 1], sum, side)) break;
        [sum, end] = [next, end + 1];
      }
      const thick = sum / side || 0;
      let along = 0;
      for (let at = first; at < end; at += 1) {
        const long = areas[at] / thick || 0;
        boxes.push(width >= height ? {x, y: y + along, width: thick, height: long} : {x: x + along, y, width: long, height: thick});
        along += long;
      }
      if (width >= height) [x, width] = [x + thick, width - thick];
      else [y, height] = [y + thick, height - thick];
      first = end;
    }
    return boxes;
  }

  /** The worst ratio of sides in a row of boxes, of which these are the largest and the smallest area. */
  const worst = (largest, smallest, sum, side) =>
    Math.max((side * side * largest) / (sum * sum), (sum * sum) / (side * side * smallest || 1e-9));

  /** Place elements in a `treemap` element of this size; `low` ones have one line for a name, `small` ones no text. */
  function placeTiles(elements, values, width, height) {
    squarify(values, width, height).forEach((box, at) => {
      const {style, classList} = elements[at];
      style.left = `${(100 * box.x) / width}%`;
      style.top = `${(100 * box.y) / height}%`;
      style.width = `${(100 * box.width) / width}%`;
      style.height = `${(100 * box.height) / height}%`;
      classList.toggle("low", box.height < 64);
      classList.toggle("small", box.width < 56 || box.height < 34);
    });
  }

  /** Those of the rows {name, value} that have room for a name, the largest first; the others are one row, `isRest`. */
  placeTiles.fold = (rows, width, height) => {
    const most = Math.max(6, Math.floor((width * height) / BOX_PX));
    const sorted = (some) => some.filter((row) => row.value > 0).sort((one, other) => other.value - one.value);
    const [large, small] = [sorted(rows).slice(0, most), sorted(rows).slice(most)];
    if (!small.length) return large;
    const rest = small.reduce((all, row) => all + row.value, 0);
    return sorted([...large, {name: `${small.length} smaller ones`, value: rest, isRest: true}]);
  };

  return placeTiles;
})();
