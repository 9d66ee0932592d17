// A plot of lines: breaks where nothing ran, events, a cursor for the keyboard, and its numbers as a table. uPlot draws it.
// The dashboard and the report share this file; it is a classic script, like uPlot, and defines `TimePlot`.
/* global uPlot */
"use strict";
// eslint-disable-next-line no-unused-vars
const TimePlot = (() => {
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 4], []];
  const SIGNS = {began: "▶", node_came: "+", node_left: "−", node_died: "✕", redis_away: "◆", disk_hung: "◆", stood_still: "◆",
    count_damaged: "◆", rule: "●", paused: "‖", resumed: "▶", speed: "≈", finished: "■"};
  const ROWS_MAX = 400;
  const NEAR_PX = 14;
  const MARGIN = 20;
  const LABEL_PX = 68;
  const SHORT_S = 240; // below, labels have seconds, and need more room
  const SECONDS = [1, 2, 5, 10, 15, 30, 60];
  const SECONDS_LABEL_PX = 92;
  const STEPS_S = [...[1, 2, 5, 10, 15, 30].map((minutes) => 60 * minutes), ...[1, 2, 3, 6, 12].map((hours) => 3600 * hours),
    ...[1, 2, 4, 7, 14, 28, 56, 112].map((days) => 86400 * days)];

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const format = (options) => new Intl.DateTimeFormat(undefined, options);
  const day = format({day: "numeric", month: "short"});
  const year = format({day: "numeric", month: "short", year: "numeric"});
  const minute = format({hour: "2-digit", minute: "2-digit"});
  const second = format({hour: "2-digit", minute: "2-digit", second: "2-digit"});
  const moment = format({dateStyle: "medium", timeStyle: "medium"});
  const date = (seconds) => new Date(seconds * 1000);

  /** The name of the reader's time zone, such as CET or GMT+5. */
  const named = format({timeZoneName: "short"});
  const zone = () => named.formatToParts().find((part) => part.type === "timeZoneName")?.value ?? "";

  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  /** Labels of the time axis: the day stands below the first label and below the first of each day. */
  function timeLabels(_, values, __, ___, step) {
    return values.map((value, at) => {
      const ofDay = day.format(date(value));
      if (step >= 86400) return ofDay;
      const isNew = !at || day.format(date(values[at - 1])) !== ofDay;
      const time = (step < 60 ? second : minute).format(date(value));
      return isNew ? `${time}\n${ofDay}` : time;
    });
  }

  class Plot {
    /** `lines` are labels; `show` writes a value. */
    constructor({title, hint = "", lines, show, height = 200, isTime = true, isLog = false, xLabel = "", points = false}) {
      Object.assign(this, {title, lines, show, height, isTime, isLog, xLabel, points});
      this.events = [];
      this.stops = [];
      this.legend = element("ul", {className: "legend"});
      this.values = lines.map((label, at) => {
        const value = element("b", {}, "–");
        this.legend.append(element("li", {}, element("i", {className: `key key${at + 1}`, "aria-hidden": "true"}), `${label} `, value));
        return value;
      });
      this.readout = element("span", {className: "hint"}, hint || (isTime ? zone() : ""));
      this.rest = this.readout.textContent;
      this.space = element("div", {className: "space", tabIndex: 0, role: "slider", "aria-label": title, "aria-valuemin": 0,
        "aria-valuemax": 0, "aria-valuenow": 0, "aria-valuetext": "no sample yet"});
      this.space.style.minHeight = `${height}px`;
      this.table = element("details", {className: "numbers"}, element("summary", {}, "The numbers as a table"));
      this.table.addEventListener("toggle", () => this.fillTable());
      this.figure = element("figure", {className: "plot"}, element("figcaption", {}, title, this.readout), this.space, this.legend,
        this.table);
      this.space.addEventListener("keydown", (event) => this.step(event));
      this.space.addEventListener("blur", () => this.chart?.setCursor({left: -10, top: -10}));
      new ResizeObserver(() => {
        if (this.chart && this.chart.width !== this.width) this.chart.setSize({width: this.width, height});
      }).observe(this.space);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.anew());
      for (const [name, isPrinting] of [["beforeprint", true], ["afterprint", false]]) { // paper is light
        addEventListener(name, () => {
          document.documentElement.classList.toggle("printing", isPrinting);
          this.anew();
        });
      }
    }

    get width() {
      return Math.max(200, this.space.clientWidth);
    }

    /** Draw x and one list of values a line, from `from` to `to`; `stops` are times in which nothing ran. */
    draw(data, {from = null, to = null, stops = [], events = []} = {}) {
      Object.assign(this, {data, range: from == null ? null : [from, to], stops});
      this.events = events.filter((event) => event.at >= from && event.at <= to).sort((one, other) => one.at - other.at);
      const last = data[0].length - 1;
      this.space.setAttribute("aria-valuemax", Math.max(0, last));
      if (!this.at || this.at > last) this.at = last;
      this.space.setAttribute("aria-valuenow", Math.max(0, this.at));
      if (this.chart) this.chart.setData(data);
      else if (this.space.isConnected) this.chart = new uPlot(this.options(), data, this.space);
      if (document.activeElement !== this.space) this.tell(null);
    }

    anew() {
      this.chart?.destroy();
      this.chart = null;
      if (this.data) this.draw(this.data, {from: this.range?.[0], to: this.range?.[1], stops: this.stops, events: this.events});
    }

    step(event) {
      if (!this.chart) return;
      const last = this.data[0].length - 1;
      const to = {ArrowLeft: this.at - 1, ArrowDown: this.at - 1, ArrowRight: this.at + 1, ArrowUp: this.at + 1, Home: 0, End: last}[event.key];
      if (to == null) return;
      event.preventDefault();
      this.at = Math.min(last, Math.max(0, to));
      this.chart.setCursor({left: this.chart.valToPos(this.data[0][this.at], "x"), top: 0});
      this.tell(this.at);
    }

    textAt(x) {
      return this.isTime ? moment.format(date(x)) : `${this.xLabel} ${x.toLocaleString()}`.trim();
    }

    /** Write the values at a sample beside the names of the lines; without one, the latest. */
    tell(at) {
      this.values.forEach((value, line) => {
        const series = this.data[line + 1];
        const text = this.show(at == null ? series.findLast((each) => each != null) : series[at]);
        if (value.textContent !== text) value.textContent = text;
      });
      const x = at == null ? null : this.data[0][at];
      const near = x == null ? [] : this.near(x);
      const text = x == null ? this.rest : [`${this.textAt(x)} ${this.isTime ? zone() : ""}`.trim(), ...near].join(" · ");
      if (this.readout.textContent !== text) this.readout.textContent = text;
      const said = this.lines.map((label, line) => `${label} ${this.show(at == null ? this.data[line + 1].findLast((v) => v != null)
        : this.data[line + 1][at])}`).join(", ");
      this.space.setAttribute("aria-valuenow", Math.max(0, at ?? this.at));
      this.space.setAttribute("aria-valuetext", [x == null ? "now" : this.textAt(x), said, ...near].join("; "));
    }

    near(x) {
      const px = (value) => this.chart.valToPos(value, "x");
      const found = this.events.filter((event) => Math.abs(px(event.at) - px(x)) < NEAR_PX / 2 + 1).slice(0, 3);
      const stopped = this.stops.some(([begin, end]) => x > begin && x < end);
      return [...found.map((event) => event.text || event.kind), ...(stopped ? ["nothing ran"] : [])];
    }

    options() {
      const axis = {stroke: style("--faint"), grid: {stroke: style("--grid"), width: 1}, ticks: {show: false},
        font: `12px ${getComputedStyle(document.body).fontFamily}`};
      const x = {...axis, size: this.isTime ? 40 : 30, space: LABEL_PX, grid: {show: false}};
      if (this.isTime) {
        const choose = (short, long) => (_, __, low, high) => (high - low < SHORT_S ? short : long);
        Object.assign(x, {values: timeLabels, incrs: choose(SECONDS, STEPS_S), space: choose(SECONDS_LABEL_PX, LABEL_PX)});
      }
      if (!this.isTime) x.values = (_, values) => values.map((value) => value == null ? "" : Intl.NumberFormat(undefined, {notation: "compact"}).format(value));
      const scale = this.isLog ? {distr: 3} : {range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.08]};
      return {
        width: this.width,
        height: this.height,
        padding: [this.isTime ? MARGIN : 8, this.isTime ? LABEL_PX / 2 : 16, 0, 0],
        legend: {show: false},
        cursor: {y: false, drag: {x: false, y: false}, points: {size: 7}},
        scales: {x: {time: this.isTime, ...(this.isLog ? {distr: 3} : {range: (_, low, high) => this.range ?? [low, high]})}, y: scale},
        axes: [x, {...axis, size: 58, space: 34, values: (_, ticks) => ticks.map((tick) => tick == null ? "" : this.show(tick))}],
        series: [{}, ...this.lines.map((label, at) => ({label, stroke: style(`--c${at + 1}`), width: 2, dash: DASHES[at],
          fill: this.lines.length === 1 && !this.points ? `${style("--c1")}1c` : undefined, paths: this.points ? () => null : undefined,
          points: {show: this.points || (this.isLog ? true : undefined), size: 6, fill: style(`--c${at + 1}`)}, spanGaps: false}))],
        hooks: {
          draw: [(chart) => this.drawStops(chart), (chart) => this.drawEvents(chart)], // over the grid
          setCursor: [(chart) => {
            if (chart.cursor.idx != null && chart.cursor.left >= 0) this.at = chart.cursor.idx;
            this.tell(chart.cursor.left >= 0 ? chart.cursor.idx : null);
          }],
        },
      };
    }

    drawStops(chart) {
      const {ctx, bbox} = chart;
      ctx.save();
      for (const [begin, end] of this.stops) {
        const left = Math.max(bbox.left, chart.valToPos(begin, "x", true));
        const right = Math.min(bbox.left + bbox.width, chart.valToPos(end, "x", true));
        if (right <= left) continue;
        ctx.fillStyle = style("--stop");
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
        ctx.fillStyle = style("--faint");
        ctx.font = `${12 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
        const text = "nothing ran";
        if (ctx.measureText(text).width + 12 * devicePixelRatio < right - left) {
          ctx.textAlign = "center";
          ctx.fillText(text, (left + right) / 2, bbox.top + bbox.height / 2);
        }
      }
      ctx.restore();
    }

    /** Draw a sign above the plot for each event, or the number of those that would overlap. */
    drawEvents(chart) {
      const {ctx, bbox} = chart;
      const groups = [];
      for (const event of this.events) {
        const left = chart.valToPos(event.at, "x", true);
        const last = groups.at(-1);
        if (last && left - last.left < NEAR_PX * devicePixelRatio) last.events.push(event);
        else groups.push({left, events: [event]});
      }
      ctx.save();
      ctx.textAlign = "center";
      ctx.font = `600 ${12 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
      for (const {left, events} of groups) {
        const isBad = events.some(({kind}) => kind === "node_died" || SIGNS[kind] === "◆");
        ctx.strokeStyle = ctx.fillStyle = style(isBad ? "--bad" : "--edge");
        ctx.beginPath();
        ctx.moveTo(left, bbox.top);
        ctx.lineTo(left, bbox.top + bbox.height);
        ctx.stroke();
        ctx.fillText(events.length > 1 ? String(events.length) : SIGNS[events[0].kind] ?? "●", left, bbox.top - 6 * devicePixelRatio);
      }
      ctx.restore();
    }

    fillTable() {
      this.table.querySelector("div")?.remove();
      if (!this.table.open || !this.data) return;
      const [xs, ...series] = this.data;
      const nth = Math.ceil(xs.length / ROWS_MAX);
      const head = element("tr", {}, element("th", {scope: "col"}, this.isTime ? `time, ${zone()}` : this.xLabel),
        ...this.lines.map((label) => element("th", {scope: "col", className: "number"}, label)));
      const rows = xs.map((x, at) => [x, at]).filter(([, at]) => at % nth === 0).reverse().map(([x, at]) =>
        element("tr", {}, element("th", {scope: "row"}, this.isTime ? moment.format(date(x)) : x.toLocaleString()),
          ...series.map((values) => element("td", {className: "number"}, values[at] == null ? "nothing ran" : this.show(values[at])))));
      this.table.append(element("div", {tabIndex: 0, role: "region", "aria-label": `Numbers: ${this.title}`},
        element("table", {className: "plain"}, element("thead", {}, head), element("tbody", {}, ...rows))));
    }
  }

  return Object.assign(Plot, {zone, moment, year, SIGNS});
})();
