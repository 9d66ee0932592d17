// The crawl's history as columns: samples from the server, and the state of this moment behind them.

import {look} from "./api.js";

const ROWS_MAX = 20000; // then all is read anew, thinned out by the server

const sum = (outcomes, prefix) =>
  Object.entries(outcomes).reduce((all, [name, count]) => (name.startsWith(prefix) ? all + count : all), 0);

/** The columns of the history that a status knows; the others have no value in its row. */
function rowOf(status) {
  const {hosts, urls, outcomes} = status;
  const row = {
    time_s: Date.now() / 1000,
    pages: status.pages,
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
      const before = this.columns[name] ?? Array(length).fill(null);
      this.columns[name] = before.concat(values);
    }
  }

  /** The columns, and behind them the moment's row if nodes run and it is younger by enough for a rate. */
  with(status) {
    const last = this.columns.time_s.at(-1) ?? 0;
    const row = status && Object.keys(status.nodes).length ? rowOf(status) : null;
    if (!row || row.time_s < last + 2) return this.columns;
    const names = new Set([...Object.keys(this.columns), ...Object.keys(row)]);
    const length = this.columns.time_s.length;
    const columns = {};
    for (const name of names) {
      columns[name] = (this.columns[name] ?? Array(length).fill(null)).concat([row[name] ?? null]);
    }
    return columns;
  }
}
