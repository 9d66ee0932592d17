// The pages of one host, one pay-level domain, and one URL: what is known of it, its fetches over time, and what can be done.
/* global TimePlot */

import {look} from "./api.js";
import {byId, empty, listing, make, morph, siteLink, table} from "./dom.js";
import {count, local, plural, span, when} from "./format.js";
import {hostTable} from "./sections.js";
import {siteForms} from "./steer.js";

const ACTIONS = {host: "host", pld: "pld", url: "explain"};
const TITLES = {host: "Host", pld: "Pay-level domain", url: "URL"};
const shown = (name, value) => {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? (Number.isInteger(value) ? count(value) : String(value)) : local(value);
};

const figure = (name, value, more = "") =>
  make("div", {}, make("dt", {}, name), make("dd", {}, make("span", {className: "value"}, value), make("span", {className: "more"}, more)));

/** What is left to list, without what figures and tables show. */
const without = (data, ...names) => Object.fromEntries(Object.entries(data).filter(([name]) => !names.includes(name)));

/** A list of URLs, which are texts, or rows with a time. */
const urls = (title, list, none) => table(title, [
  {title: "URL", head: true, of: (row) => siteLink("url", typeof row === "string" ? row : row.url)},
  ...(typeof list[0] === "string" ? [] : [{title: "at", number: true, of: (row) => when(row.at)}]),
], list, none);

function robotsTable(rows) {
  return table("robots.txt, as read", [
    {title: "authority", head: true, of: (row) => row.authority},
    {title: "rules", of: (row) => make("span", {className: "lines"}, Array.isArray(row.rules) ? row.rules.join("\n") || "none" : plural(row.lines, "line"))},
    {title: "Crawl-delay", number: true, of: (row) => (row.crawl_delay == null ? "none" : span(row.crawl_delay))},
    {title: "valid until", of: (row) => local(row.valid_until)},
  ], rows, "No robots.txt of this host is kept: it was not read yet, or has expired.");
}

function timelineTable(rows) {
  return table("The last fetches", [
    {title: "URL", head: true, of: (row) => siteLink("url", row.url)},
    {title: "at", number: true, of: (row) => when(row.at)},
    {title: "status", of: (row) => (row.status == null ? row.outcome : String(row.status))},
    {title: "took", number: true, of: (row) => (row.ms == null ? "" : `${count(row.ms)} ms`)},
  ], rows.slice(0, 25), "No fetch of this host is kept. The last ones would be here, with status and time.");
}

const SHOWS = {
  host: (data) => ({
    figures: [
      figure("State", data.blacklisted ? "blacklisted" : data.state, data.due_in_s == null ? "" : `next fetch in ${span(data.due_in_s)}`),
      figure("URLs in Redis", count(data.queued), data.taken ? "one is being fetched" : "none is being fetched"),
      figure("Rests", span(data.delay), data.pld_delay ? `${span(data.pld_delay)} between starts in the domain` : "between two fetches"),
      figure("Failures in a row", count(data.failures), data.failed_by ? `${data.failed_by}, ${local(data.failed)}` : "it answers"),
      figure("Partition", count(data.partition), data.owner ? `owned by ${data.owner}` : "no owner"),
    ],
    parts: [timelineTable(data.timeline ?? []), robotsTable(data.robots),
      urls("The next URLs", data.next_urls, "No URL of this host is in Redis; more may wait on disk."),
      ...(data.pages?.length ? [urls("The newest pages", data.pages, "")] : []),
      listing("All else that is known", {addresses: data.addresses, ...without(data, "host", "pld", "state", "due_in_s", "queued", "taken", "delay",
        "pld_delay", "failures", "failed_by", "failed", "partition", "owner", "timeline", "robots", "next_urls", "pages", "addresses")}, shown)],
  }),
  pld: (data) => {
    const {budget, hosts, errors} = data;
    const limit = budget.limits?.budget?.value ?? budget.budget_by_policy;
    return {
      figures: [
        figure("URLs a turn", limit == null ? "no limit" : count(limit), budget.limits?.budget ? `by the rule ${budget.limits.budget.rule}` : `by ${budget.policy}`),
        figure("Linked from", budget.in_degree == null ? "–" : count(budget.in_degree), "other PLDs"),
        figure("Hosts in Redis", count(hosts.length), data.is_whole === false ? "or more" : ""),
        figure("URLs in Redis", count(hosts.reduce((all, host) => all + host.queued, 0)), "of these hosts"),
        figure("Failed tries", count(errors.reduce((all, row) => all + row.fetches, 0)), plural(errors.length, "reason")),
      ],
      parts: [hostTable("Its hosts in Redis, most URLs first", hosts, "No host of it is in Redis; its URLs wait on disk, or there are none."),
        table("What fails", [
          {title: "reason", head: true, of: (row) => row.reason},
          {title: "tries", number: true, of: (row) => count(row.fetches)},
          {title: "last", of: (row) => local(row.last)},
          {title: "example", of: (row) => row.example && siteLink("url", row.example)},
        ], errors, "Nothing of it has failed."),
        listing("Budget and limits", budget, shown)],
    };
  },
  url: (data) => ({
    figures: [
      figure("Where it is", data.where ?? "–", data.ahead == null ? "" : `${count(data.ahead)} before it`),
      figure("Outcome", data.outcome?.name.split(":").at(-1) ?? "none yet", data.outcome ? `${data.outcome.name.split(":")[0]}, ${local(data.outcome.time)}` : ""),
      figure("Seen", data.seen == null ? "unknown" : data.seen ? "yes" : "no", data.depth == null ? "" : `depth ${count(data.depth)}`),
      figure("Allowed", data.blacklisted ? "blacklisted" : "yes", data.blacklisted ?? ""),
      figure("Partition", count(data.partition), data.owner ? `owned by ${data.owner}` : "no owner"),
    ],
    parts: [make("p", {}, "Its host is ", siteLink("host", data.host), ", its pay-level domain ", siteLink("pld", data.pld), "."),
      listing("All that is known", without(data, "url", "partition", "partitions", "owner", "ahead", "where"), shown)],
  }),
};

export class SitePage {
  constructor(onDone) {
    this.onDone = onDone;
    this.timeline = new TimePlot({title: "How long each fetch took", lines: ["answers", "4xx, 5xx", "no answer"], points: true, height: 180,
      show: (ms) => (ms == null ? "–" : `${count(ms)} ms`)});
    byId("site-timeline").replaceChildren(this.timeline.figure);
  }

  /** Go to a page; what it shows is read by `read`. */
  open(kind, name) {
    Object.assign(this, {kind, name});
    byId("site-kind").textContent = TITLES[kind];
    byId("site-name").textContent = name;
    document.title = `${name} – bigcrawl`;
    morph(byId("site-figures"), ...Array.from({length: 5}, () => figure("\u00a0", "–")));
    morph(byId("site-parts"), empty("Reading …"));
    byId("site-parents").replaceChildren();
    byId("site-timeline").hidden = kind !== "host";
    byId("site-forms").replaceChildren(...(kind === "url" ? [] : siteForms(kind, name, this.onDone)));
    byId("site-steer").hidden = kind === "url";
    byId("site-name").focus();
  }

  async read() {
    const {kind, name} = this;
    let data;
    try {
      data = await look(ACTIONS[kind], {word: name});
    } catch (error) {
      if (error.status !== 400) throw error;
      morph(byId("site-parts"), empty(error.message));
      return;
    }
    if (kind !== this.kind || name !== this.name) return;
    const {figures, parts} = SHOWS[kind](data);
    morph(byId("site-figures"), ...figures);
    morph(byId("site-parents"), ...(kind === "host" && data.pld !== name ? ["of ", siteLink("pld", data.pld)] : []));
    morph(byId("site-parts"), ...parts.map((part) => make("div", {className: "part"}, part)));
    if (kind === "host") this.draw(data.timeline ?? []);
  }

  draw(timeline) {
    const rows = [...timeline].filter((row) => row.ms != null).sort((one, other) => one.at - other.at);
    const is = [(row) => row.status != null && row.status < 400, (row) => row.status >= 400, (row) => row.status == null];
    this.timeline.draw([rows.map((row) => row.at), ...is.map((fits) => rows.map((row) => (fits(row) ? row.ms : null)))],
      {from: (rows[0]?.at ?? Date.now() / 1000 - 60) - 1, to: (rows.at(-1)?.at ?? Date.now() / 1000) + 1});
  }
}

