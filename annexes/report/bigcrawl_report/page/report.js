// Draws the plots of a report from the JSON in the page. Each plot has a place: an element with its name.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = ["#0b57a4", "#b35900", "#1a7f37", "#8250df", "#a40e26"];
  const HEIGHT = 240;
  const short = new Intl.NumberFormat("en", {notation: "compact", maximumFractionDigits: 2});
  const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 4});
  const shown = (value) => value == null ? "–" : Math.abs(value) >= 1e5 ? short.format(value) : whole.format(value);
  const iso = (seconds) => new Date(seconds * 1e3).toISOString();
  const times = (_, values, __, ___, step) => values.map((value, at) => {
    const day = iso(value).slice(0, 10), clock = step >= 86400 ? "" : iso(value).slice(11, step >= 60 ? 16 : 19);
    const isNew = at === 0 || iso(values[at - 1]).slice(0, 10) !== day;
    return !clock ? day : isNew ? `${clock}\n${day}` : clock;
  });
  const ticks = (_, values) => values.map((value) => value == null ? "" : short.format(value));

  function options(plot, width) {
    const names = Object.keys(plot.series);
    const few = plot.x.length < 60;
    return {
      width, height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      scales: {
        x: {time: plot.is_time, distr: plot.is_log ? 3 : 1},
        y: plot.is_log ? {distr: 3} : {range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.05 : 1]},
      },
      axes: [
        {label: plot.x_label || undefined, labelSize: 18, stroke: "#1b1f24", grid: {stroke: "#e6e9ed"},
          ...(plot.is_time ? {values: times, space: 90} : {values: ticks})},
        {label: plot.y_label || undefined, labelSize: 18, size: 64, stroke: "#1b1f24", grid: {stroke: "#e6e9ed"}, values: ticks},
      ],
      series: [
        {label: plot.is_time ? "time (UTC)" : plot.x_label,
          value: (_, value) => plot.is_time && value != null ? iso(value).slice(0, 19).replace("T", " ") : shown(value)},
        ...names.map((name, at) => ({
          label: name, stroke: COLOURS[at % COLOURS.length], width: 1.5, spanGaps: false,
          dash: at > 2 ? [6, 4] : undefined, points: {show: few, size: 5}, value: (_, value) => shown(value),
        })),
      ],
    };
  }

  function draw(place) {
    const plot = data[place.dataset.plot];
    const values = [plot.x, ...Object.values(plot.series)];
    const drawn = new uPlot(options(plot, Math.max(260, place.clientWidth)), values, place);
    let width = place.clientWidth;
    new ResizeObserver(() => {
      if (place.clientWidth !== width) {
        width = place.clientWidth;
        drawn.setSize({width: Math.max(260, width), height: HEIGHT});
      }
    }).observe(place);
  }

  document.querySelectorAll("[data-plot]").forEach(draw);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  addEventListener("load", () => { document.documentElement.dataset.loadedMs = Math.round(performance.now()); });
})();
