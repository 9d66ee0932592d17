// Plots over the crawl's history, with the state of this moment as their last point. uPlot draws them.
/* global uPlot */

import {bytes, compact, rate} from "./format.js";
import {byId, make} from "./dom.js";

const perSecond = (label, column) => ({label, column, isRate: true});
const PLOTS = [
  {title: "Answers a second", show: rate, lines: [perSecond("2xx", "status_2xx"), perSecond("3xx", "status_3xx"),
    perSecond("4xx", "status_4xx"), perSecond("5xx", "status_5xx")]},
  {title: "Failures a second", show: rate, lines: [perSecond("errors", "errors"), perSecond("retries", "retries"),
    perSecond("dropped", "dropped"), perSecond("forbidden by robots.txt", "robots_forbidden")]},
  {title: "Bytes a second", show: bytes, lines: [perSecond("bodies", "bytes")]},
  {title: "URLs that wait", show: compact, lines: [{label: "on disk", column: "urls_disk"},
    {label: "in inboxes", column: "urls_inbox"}, {label: "in Redis", column: "urls_queued"},
    {label: "taken", column: "urls_taken"}]},
  {title: "URLs seen and ended", show: compact, lines: [{label: "seen", column: "seen"},
    {label: "ended", column: "ended"}]},
  {title: "URLs withheld, by budgets and blacklist", show: compact, lines: [{label: "withheld", column: "urls_withheld"}]},
  {title: "Hosts by state", show: compact, lines: [{label: "ready", column: "hosts_ready"},
    {label: "waiting", column: "hosts_waiting"}, {label: "busy", column: "hosts_busy"},
    {label: "snoozed", column: "hosts_snoozed"}, {label: "retired", column: "hosts_retired"}]},
  {title: "New URLs a second", show: rate, lines: [perSecond("sent to inboxes", "sent"),
    perSecond("seen before", "duplicates")]},
  {title: "Nodes and partitions", show: compact, lines: [{label: "nodes", column: "nodes"},
    {label: "partitions owned", column: "partitions_owned"}]},
];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 4], [1, 4]];
const HEIGHT = 190;

/** The values of a line; of a counter, its growth per second between two samples. */
function values(line, columns, from) {
  const column = columns[line.column] ?? [];
  if (!line.isRate) return column.slice(from);
  const times = columns.time_s;
  return times.slice(from).map((time, offset) => {
    const at = from + offset;
    const [before, now] = [column[at - 1], column[at]];
    const seconds = at ? time - times[at - 1] : 0;
    return before == null || now == null || now < before || seconds <= 0 ? null : (now - before) / seconds;
  });
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Plot {
  constructor(plan) {
    this.plan = plan;
    this.legend = make("ul", {className: "legend"});
    this.items = plan.lines.map((line, at) => {
      const item = make("li", {}, make("i", {className: `key key${at + 1}`, "aria-hidden": "true"}), `${line.label} `);
      item.append(make("b", {}, "–"));
      this.legend.append(item);
      return item.lastChild;
    });
    this.space = make("div", {"aria-hidden": "true"});
    this.figure = make("figure", {}, make("figcaption", {}, plan.title), this.space, this.legend);
    new ResizeObserver(() => this.chart?.setSize({width: this.width, height: HEIGHT})).observe(this.space);
  }

  get width() {
    return Math.max(200, this.space.clientWidth);
  }

  draw(data, [from, to]) {
    this.range = [from, to];
    if (this.chart) this.chart.setData(data);
    else this.chart = new uPlot(this.options(), data, this.space);
    this.tell(null);
  }

  /** Write the values at a sample beside the names of the lines; without one, the latest. */
  tell(at) {
    this.items.forEach((item, line) => {
      const series = this.chart.data[line + 1];
      const text = this.plan.show(at == null ? series.findLast((value) => value != null) : series[at]);
      if (item.textContent !== text) item.textContent = text;
    });
  }

  options() {
    const axis = {stroke: style("--faint"), grid: {stroke: style("--grid"), width: 1}, ticks: {stroke: style("--grid")}};
    return {
      width: this.width,
      height: HEIGHT,
      legend: {show: false},
      cursor: {y: false, drag: {x: false, y: false}},
      scales: {x: {range: () => this.range}, y: {range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.05]}},
      axes: [axis, {...axis, size: 62, values: (_, ticks) => ticks.map((tick) => this.plan.show(tick))}],
      series: [{}, ...this.plan.lines.map((line, at) =>
        ({label: line.label, stroke: style(`--c${at + 1}`), width: 1.75, dash: DASHES[at], points: {show: false}}))],
      hooks: {setCursor: [(chart) => this.tell(chart.cursor.idx)]},
    };
  }

  forget() {
    this.chart?.destroy();
    this.chart = null;
  }
}

/** All plots; `draw` them with the columns of the history and the seconds to show, 0 for all. */
export class Plots {
  constructor() {
    this.plots = PLOTS.map((plan) => new Plot(plan));
    byId("plots").replaceChildren(...this.plots.map((plot) => plot.figure));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.plots.forEach((plot) => plot.forget());
      if (this.last) this.draw(...this.last);
    });
  }

  draw(columns, seconds) {
    this.last = [columns, seconds];
    const times = columns.time_s;
    if (!times.length) return;
    const end = times.at(-1);
    // A young crawl fills the plot.
    const begin = Math.min(end - 60, Math.max(times[0], seconds ? end - seconds : 0));
    // One sample before the first that is shown, so that lines begin at the edge.
    const from = Math.max(0, times.findIndex((time) => time >= begin) - 1);
    const shown = times.slice(from);
    for (const plot of this.plots) {
      plot.draw([shown, ...plot.plan.lines.map((line) => values(line, columns, from))], [begin, end]);
    }
  }
}
