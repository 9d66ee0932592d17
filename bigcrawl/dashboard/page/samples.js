// The crawl's history as columns, and what a plot shows of it: few points, with breaks where nothing ran.

import {look} from "./api.js";

const ROWS_MAX = 20000; // then all is read anew, thinned out by the server
const POINTS_MAX = 240;
const BREAK_S = 25; // samples of the last hour are ten seconds apart
const BREAK_TIMES = 1.8; // older ones are as far apart as their neighbours

const sum = (outcomes, prefix) =>
  Object.entries(outcomes).reduce((all, [name, count]) => (name.startsWith(prefix) ? all + count : all), 0);

/** The columns of the history that a status knows; the others have no value in its row. */
function rowOf(status) {
  const {hosts, urls, outcomes} = status;
  const row = {
    time_s: Date.now() / 1000,
    pages: status.pages,
    items: status.items ?? null,
    bytes: status.bytes,
    seen: urls.seen,
    ended: urls.ended,
    errors: sum(outcomes, "error:"),
    dropped: sum(outcomes, "dropped:"),
    retries: sum(outcomes, "retried:"),
    robots_forbidden: outcomes["dropped:forbidden"] ?? 0,
    nodes: Object.keys(status.nodes).length,
    partitions_owned: status.partitions.owned,
  };
  for (const hundred of [2, 3, 4, 5]) row[`status_${hundred}xx`] = sum(outcomes, `status:${hundred}`);
  for (const place of ["inbox", "disk", "queued", "taken", "withheld"]) row[`urls_${place}`] = urls[place];
  for (const state of Object.keys(hosts)) row[`hosts_${state}`] = hosts[state];
  return row;
}

export class History {
  columns = {time_s: []};

  /** Read the samples that are not here yet. */
  async read() {
    if (this.columns.time_s.length > ROWS_MAX) this.columns = {time_s: []};
    const news = await look("history", {since: this.columns.time_s.at(-1)});
    const length = this.columns.time_s.length;
    for (const [name, values] of Object.entries(news)) {
      if (!Array.isArray(values) || values.length !== news.time_s.length) continue;
      this.columns[name] = (this.columns[name] ?? Array(length).fill(null)).concat(values);
    }
  }

  /** The columns, and behind them the moment's row if nodes run and it is younger by enough for a rate. */
  with(status) {
    const last = this.columns.time_s.at(-1) ?? 0;
    const row = status && Object.keys(status.nodes).length ? rowOf(status) : null;
    if (!row || row.time_s < last + 2) return this.columns;
    const length = this.columns.time_s.length;
    const columns = {};
    for (const name of new Set([...Object.keys(this.columns), ...Object.keys(row)])) {
      columns[name] = (this.columns[name] ?? Array(length).fill(null)).concat([row[name] ?? null]);
    }
    return columns;
  }
}

/** Whether nothing ran between two samples: no node lived, or they are much farther apart than those around them. */
function isBreak(columns, at) {
  const times = columns.time_s;
  if (columns.nodes?.[at - 1] === 0) return true;
  const apart = times[at] - times[at - 1];
  const around = Math.max(at > 1 ? times[at - 1] - times[at - 2] : 0, at + 1 < times.length ? times[at + 1] - times[at] : 0);
  return apart > Math.max(BREAK_S, BREAK_TIMES * around);
}

/** A window of the history: `from` and `to` in Unix seconds, its `stops`, and `POINTS_MAX` samples or a few more. */
export class Window {
  constructor(columns, seconds, now = Date.now() / 1000) {
    this.columns = columns;
    const times = columns.time_s;
    const last = times.at(-1) ?? now;
    this.to = seconds ? Math.max(last, now) : last;
    this.from = Math.min(this.to - 60, Math.max(times[0] ?? this.to - 60, seconds ? this.to - seconds : 0)); // a young crawl fills it
    this.stops = [];
    this.rows = this.choose();
    this.x = this.rows.map((row) => row.x);
  }

  choose() {
    const times = this.columns.time_s;
    const first = times.findIndex((time) => time >= this.from);
    if (first < 0) {
      if (times.length) this.stops.push([times.at(-1), this.to]);
      return [];
    }
    const width = (this.to - this.from) / POINTS_MAX;
    const rows = [];
    let before = null; // the sample that a rate counts from
    for (let at = Math.max(0, first - 1); at < times.length; at += 1) {
      const broken = at > 0 && at >= first && isBreak(this.columns, at);
      if (broken) {
        this.stops.push([times[at - 1], times[at]]);
        rows.push({x: (times[at - 1] + times[at]) / 2, at: null, before: null});
        before = null;
      }
      const ends = at + 1 === times.length || isBreak(this.columns, at + 1);
      const isLast = ends || Math.floor((times[at + 1] - this.from) / width) !== Math.floor((times[at] - this.from) / width);
      if (broken || isLast) {
        rows.push({x: times[at], at, before});
        before = at;
      }
    }
    if (this.to - times.at(-1) > BREAK_S) this.stops.push([times.at(-1), this.to]);
    return rows;
  }

  /** The values of a column. */
  level = (name) => this.rows.map(({at}) => (at == null ? null : this.columns[name]?.[at] ?? null));

  /** The growth of a column a second. */
  rate = (name) => this.rows.map(({at, before}) => {
    if (at == null || before == null) return null;
    const [one, other] = [this.columns[name]?.[before], this.columns[name]?.[at]];
    const seconds = this.columns.time_s[at] - this.columns.time_s[before];
    return one == null || other == null || other < one || seconds <= 0 ? null : (other - one) / seconds;
  });

  /** By how much a column grew; null if it has no two values. */
  growth(name) {
    const values = this.level(name).filter((value) => value != null);
    return values.length > 1 ? Math.max(0, values.at(-1) - values[0]) : null;
  }
}
