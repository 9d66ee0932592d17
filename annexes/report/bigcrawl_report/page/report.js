// Draws the plots and the treemap of a report from the JSON in the page, and writes times in the reader's zone.
/* global TimePlot, placeTiles */
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const short = new Intl.NumberFormat(undefined, {notation: "compact", maximumFractionDigits: 2});
  const whole = new Intl.NumberFormat(undefined, {maximumFractionDigits: 2});
  const shown = (value) => (value == null ? "–" : Math.abs(value) >= 1e5 ? short.format(value) : whole.format(value));

  function draw(place) {
    const plan = data.plots[place.dataset.plot];
    const lines = Object.keys(plan.series);
    const plot = new TimePlot({title: plan.title, lines, show: shown, isTime: plan.is_time, isLog: plan.is_log, xLabel: plan.x_label,
      height: place.dataset.plot === "pages_per_s" ? 300 : 200, hint: plan.is_time ? "" : `by ${plan.x_label}`});
    plot.figure.dataset.plot = place.dataset.plot;
    place.replaceWith(plot.figure);
    const [from, to] = [plan.x[0], plan.x.at(-1)];
    plot.draw([plan.x, ...Object.values(plan.series)], {from, to, stops: plan.stops, events: plan.events});
  }

  function drawTiles(place) {
    const rows = placeTiles.fold(data.tiles[place.dataset.tiles].map(([name, value]) => ({name, value})), place.clientWidth, place.clientHeight);
    const tiles = rows.map(({name, value}, at) => {
      const tile = document.createElement("div");
      tile.className = `tile${1 + (at % 5)}`;
      tile.title = `${name}: ${value.toLocaleString()} pages`;
      for (const [tag, text] of [["b", name], ["span", value.toLocaleString()]]) {
        tile.append(Object.assign(document.createElement(tag), {textContent: text}));
      }
      return tile;
    });
    placeTiles(tiles, rows.map(({value}) => value), place.clientWidth, place.clientHeight);
    place.replaceChildren(...tiles);
  }

  document.querySelectorAll("time").forEach((each) => {
    each.textContent = `${TimePlot.moment.format(new Date(each.dateTime))} ${TimePlot.zone()}`;
  });
  document.querySelectorAll("[data-plot]").forEach(draw);
  document.querySelectorAll("[data-tiles]").forEach((place) => new ResizeObserver(() => drawTiles(place)).observe(place));
  addEventListener("beforeprint", () => document.querySelectorAll("details:not(.numbers)").forEach((each) => { each.open = true; }));
  addEventListener("load", () => { document.documentElement.dataset.loadedMs = Math.round(performance.now()); });
})();
