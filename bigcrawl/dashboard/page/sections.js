// The sections below the first screen, in the order in which an operator asks. Each reads its own while it is in view.
/* global TimePlot, placeTiles */

import {look} from "./api.js";
import {byId, empty, make, morph, siteLink, table} from "./dom.js";
import {bytes, compact, count, local, plural, rate, share, span, steady} from "./format.js";

const HOSTS = 12; // of a page
const FIRST_MAX = 1000;
const SAMPLED = "steps of random walks"; // a figure of the spider that samples

/** Plots of a section; each has lines of [label, column, whether its growth a second is meant]. */
const PLOTS = {
  failures: [
    {title: "Failures a second", show: rate, of: [["errors", "errors", true], ["4xx", "status_4xx", true], ["5xx", "status_5xx", true],
      ["retries", "retries", true], ["forbidden by robots.txt", "robots_forbidden", true]]},
    {title: "Answers a second", show: rate, of: [["2xx", "status_2xx", true], ["3xx", "status_3xx", true]]},
  ],
  hosts: [{title: "Hosts by state", show: compact, of: [["ready", "hosts_ready"], ["waiting", "hosts_waiting"], ["busy", "hosts_busy"],
    ["snoozed", "hosts_snoozed"], ["retired", "hosts_retired"]]}],
  pages: [{title: "Bytes a second", show: bytes, of: [["bodies", "bytes", true]]}],
  nodes: [{title: "Nodes", show: compact, of: [["nodes", "nodes"]]},
    {title: "Partitions with an owner", show: compact, of: [["owned", "partitions_owned"]]}],
  queues: [
    {title: "URLs that wait, by place", show: compact, of: [["on disk", "urls_disk"], ["in inboxes", "urls_inbox"],
      ["in Redis", "urls_queued"], ["taken", "urls_taken"]]},
    {title: "URLs seen and ended", show: compact, of: [["seen", "seen"], ["ended", "ended"]]},
    {title: "Links a second", show: rate, of: [["sent to inboxes", "sent", true], ["seen before", "duplicates", true]]},
  ],
  budgets: [{title: "URLs withheld by budgets and blacklist", show: compact, of: [["withheld", "urls_withheld"]]}],
};

export class SectionPlots {
  constructor() {
    this.plots = Object.entries(PLOTS).flatMap(([section, plans]) => plans.map((plan) => {
      const plot = new TimePlot({...plan, lines: plan.of.map(([label]) => label)});
      byId(`${section}-plots`).append(plot.figure);
      return {section, plan, plot};
    }));
  }

  draw(window, isInView) {
    for (const {section, plan, plot} of this.plots) {
      if (!isInView(section)) continue;
      plot.draw([window.x, ...plan.of.map(([, column, isRate]) => (isRate ? window.rate(column) : window.level(column)))], window);
    }
  }
}

function showErrors({errors}) {
  morph(byId("errors"), table("Failed tries by reason, with the site that fails most and its last URL", [
    {title: "reason", head: true, of: (row) => row.reason},
    {title: "tries", number: true, of: (row) => count(row.fetches)},
    {title: "sites", number: true, of: (row) => count(row.plds)},
    {title: "most at", of: (row) => siteLink("pld", row.worst[0].pld)},
    {title: "last", of: (row) => local(row.worst[0].last)},
    {title: "example", of: (row) => row.worst[0].example && siteLink("url", row.worst[0].example)},
  ], errors.slice(0, 30), "Nothing has failed. Reasons, sites and examples would be here."));
  const failed = new Map();
  for (const {reason, worst} of errors) {
    for (const {pld, fetches} of worst) {
      const row = failed.get(pld) ?? {pld, fetches: 0, reasons: []};
      row.fetches += fetches;
      row.reasons.push(reason);
      failed.set(pld, row);
    }
  }
  const rows = [...failed.values()].sort((one, other) => other.fetches - one.fetches).slice(0, 15);
  morph(byId("failing"), table("Pay-level domains (PLDs) with most failed tries", [
    {title: "PLD", head: true, of: (row) => siteLink("pld", row.pld)},
    {title: "failed tries", number: true, of: (row) => count(row.fetches)},
    {title: "reasons", of: (row) => row.reasons.slice(0, 4).join(", ")},
  ], rows, "No site has failed."));
}

function showOutcomes(status) {
  const rows = Object.entries(status.outcomes).sort((one, other) => other[1] - one[1]);
  morph(byId("outcomes"), table("URLs by outcome", [
    {title: "outcome", head: true, of: ([name]) => name},
    {title: "URLs", number: true, of: ([, number]) => count(number)},
    {title: "of all", number: true, of: ([, number]) => share(number, status.urls.ended)},
  ], rows.slice(0, 20), "No URL has ended yet."));
}

export const hostTable = (caption, hosts, without) => table(caption, [
  {title: "host", head: true, of: (row) => siteLink("host", row.host)},
  {title: "state", of: (row) => row.state},
  {title: "due in", number: true, of: (row) => (row.due_in_s == null ? "" : span(row.due_in_s))},
  {title: "queued", number: true, of: (row) => count(row.queued)},
  {title: "rests", number: true, of: (row) => span(row.rest_s)},
  {title: "failures", of: (row) => (row.failures ? `${count(row.failures)} ${row.why}` : "")},
], hosts, without);

/** The listing of hosts has a state and a first row, which its controls set. */
class HostList {
  constructor() {
    this.first = 0;
    const go = (to) => () => {
      this.first = Math.max(0, to());
      this.read().catch((error) => morph(byId("hosts-list"), empty(error.message)));
    };
    byId("host-state").addEventListener("change", go(() => 0));
    byId("hosts-next").addEventListener("click", go(() => this.first + HOSTS));
    byId("hosts-before").addEventListener("click", go(() => this.first - HOSTS));
  }

  async read() {
    const {hosts} = await look("hosts", {state: byId("host-state").value, limit: HOSTS, first: this.first});
    morph(byId("hosts-list"), hostTable(`Hosts from number ${this.first + 1} on, in the order of their due times`, hosts,
      "No host in Redis has this state."));
    byId("hosts-next").disabled = hosts.length < HOSTS || this.first + HOSTS > FIRST_MAX;
    byId("hosts-before").disabled = !this.first;
  }
}

function showHosts(status) {
  const {hosts, tail} = status;
  const parts = ["ready", "waiting", "busy", "snoozed", "retired"].map((state) => `${count(hosts[state])} ${state}`);
  morph(byId("hosts-line"), `${parts.join(", ")}. `, tail ? "The longest queue is that of " : "",
    tail ? siteLink("host", tail.host) : "", tail ? `: ${plural(tail.urls, "URL")}, which take ${span(tail.least_s)} at least.` : "");
}

/** The suffix that groups a PLD in the treemap. */
const ADDRESSES = "addresses";
const suffix = (pld) => (/^[\d.:[\]]+$/.test(pld) ? ADDRESSES : pld.slice(pld.indexOf(".") + 1));

const shown = (group) => (group === ADDRESSES ? group : `.${group}`);

export class PldMap {
  constructor() {
    this.zoom = "";
    byId("map").addEventListener("click", (event) => {
      const group = event.target.closest("[data-group]")?.dataset.group;
      if (group != null) this.zoomTo(group);
    });
    byId("map-out").addEventListener("click", () => this.zoomTo(""));
    byId("map").addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.zoom) this.zoomTo("");
    });
    byId("map-by").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(byId("map"));
  }

  zoomTo(group) {
    const before = this.zoom;
    this.zoom = group;
    this.draw();
    (group ? byId("map-out") : byId("map").querySelector(`[data-group="${CSS.escape(before)}"]`))?.focus();
    byId("spoken").textContent = `${byId("map").getAttribute("aria-label")}, ${plural(byId("map").children.length, "box", "boxes")}`;
  }

  show(data) {
    this.data = data;
    this.draw();
    const by = [...data.plds].sort((one, other) => other[this.by] - one[this.by]);
    morph(byId("plds"), table(`The largest of ${plural(by.length, "PLD")}; budgets are URLs a turn`, [
      {title: "PLD", head: true, of: (row) => siteLink("pld", row.pld)},
      {title: "pages", number: true, of: (row) => count(row.pages)},
      {title: "share", number: true, of: (row) => share(row.pages, data.pages)},
      {title: "bytes", number: true, of: (row) => bytes(row.bytes)},
      {title: "linked from", number: true, of: (row) => (row.in_degree == null ? "" : count(row.in_degree))},
      {title: "budget", number: true, of: (row) => (row.budget == null ? "none" : count(row.budget))},
      {title: "set by", of: (row) => row.budget_set_by ?? ""},
    ], by.slice(0, 12), "No page is counted yet."));
  }

  get by() {
    return byId("map-by").value;
  }

  draw() {
    const [map, data] = [byId("map"), this.data];
    byId("map-out").hidden = !this.zoom;
    if (!data?.plds.length) return morph(map, empty("No page is counted yet. Each site would be a box as large as its pages."));
    const groups = new Map();
    for (const row of data.plds) groups.set(suffix(row.pld), [...(groups.get(suffix(row.pld)) ?? []), row]);
    const order = [...groups.keys()];
    const isGrouped = !this.zoom && groups.size > 1 && data.plds.length > 30;
    let rows;
    if (isGrouped) {
      rows = [...groups].map(([name, plds]) => ({name: shown(name), group: name, value: plds.reduce((all, row) => all + row[this.by], 0),
        more: plural(plds.length, "site")}));
    } else {
      rows = (this.zoom ? groups.get(this.zoom) ?? [] : data.plds).map((row) => ({name: row.pld, value: row[this.by],
        tile: order.indexOf(suffix(row.pld))}));
    }
    const listed = data.plds.reduce((all, row) => all + row.pages, 0);
    if (!this.zoom && this.by === "pages" && data.pages > listed) rows.push({name: "all others", isRest: true, value: data.pages - listed});
    rows = placeTiles.fold(rows, map.clientWidth, map.clientHeight);
    map.setAttribute("aria-label", `${this.zoom ? `Sites of ${shown(this.zoom)}` : "Sites"} as boxes by ${this.by}; the table below has the largest`);
    const show = this.by === "bytes" ? bytes : count;
    const tiles = rows.map((row, at) => {
      const inner = [make("b", {}, row.name), make("span", {}, [show(row.value), row.more].filter(Boolean).join(", "))];
      const className = `tile${1 + ((row.tile ?? at) % 5)}`;
      const title = `${row.name}: ${show(row.value)} ${this.by}`;
      if (row.group != null) return make("button", {type: "button", className, title, "data-group": row.group}, inner);
      if (row.isRest) return make("div", {className: "tile5", title}, inner);
      return make("a", {className, title, href: `#/pld/${encodeURIComponent(row.name)}`}, inner);
    });
    placeTiles(tiles, rows.map((row) => row.value), map.clientWidth || 1000, map.clientHeight || 380);
    return morph(map, tiles);
  }
}

function showNodes({nodes}) {
  const stages = (row) => Object.entries(row.stages).map(([stage, number]) => `${count(number)} ${stage}`).join(", ");
  morph(byId("nodes-list"), table("Nodes that live, or died a short time ago", [
    {title: "node", head: true, of: (row) => row.node},
    {title: "state", of: (row) => (row.trouble ? `${row.state}; waits: ${row.trouble}` : row.state)},
    {title: "last seen", number: true, of: (row) => `${span(row.last_heard_s)} ago`},
    {title: "up", number: true, of: (row) => span(row.up_s)},
    {title: "partitions", number: true, of: (row) => count(row.partitions)},
    {title: "pages", number: true, of: (row) => count(row.pages)},
    {title: "pages/s", number: true, of: (row) => steady(row.pages_per_s)},
    {title: "URLs held", of: stages},
    {title: "fetches", number: true, of: (row) => `${count(row.stages.started ?? 0)} of ${count(row.fetches_max)}`},
    {title: "outbox", number: true, of: (row) => (row.crowded ? `${count(row.outbox)}, full` : count(row.outbox))},
    {title: "late", number: true, of: (row) => span(row.late_ms / 1000)},
  ], nodes, "No node runs. Start one with scrapy crawl; each would be a row here.", {wide: true}));
}

function showDisks({disks}) {
  const used = (disk) => Math.round(100 - (100 * disk.free) / disk.size);
  morph(byId("disks"), table("Disks of the machine that serves this page", [
    {title: "what is there", head: true, of: ([name]) => ({state: "state of the crawl", warc: "WARC files"})[name] ?? name},
    {title: "free", number: true, of: ([, disk]) => bytes(disk.free)},
    {title: "size", number: true, of: ([, disk]) => bytes(disk.size)},
    {title: "used", of: ([name, disk]) => [make("meter", {min: 0, max: 100, high: 90, value: used(disk), "aria-label": `disk used, ${name}`}),
      ` ${used(disk)} %`]},
  ], Object.entries(disks), "No disk answers."));
}

function showPartitions(status) {
  const {partitions, nodes} = status;
  morph(byId("nodes-line"), `${count(partitions.owned)} of ${plural(partitions.all, "partition")} have an owner, `
    + `${plural(Object.keys(nodes).length, "node")} ${Object.keys(nodes).length === 1 ? "runs" : "run"}.`
    + (partitions.damaged ? ` ${count(partitions.damaged)} cannot be read.` : ""));
}

function showQueues({urls, revisits}) {
  if (revisits?.waiting || revisits?.visits) showRevisits(revisits);
  const rows = [["in inboxes, not merged yet", urls.inbox], ["on disk", urls.disk], ["in Redis, by host", urls.queued],
    ["taken by nodes", urls.taken], ["withheld", urls.withheld], ["ended", urls.ended]];
  morph(byId("queues-list"), table("Where the URLs of the crawl are", [
    {title: "place", head: true, of: ([name]) => name},
    {title: "URLs", number: true, of: ([, number]) => count(number)},
  ], rows));
}

/** What the spider counts, and what a sample estimates, if it does. */
async function showFigures({figures}) {
  const place = byId("figures-of-spider");
  if (!Object.keys(figures ?? {}).length) return morph(place);
  const rows = Object.entries(figures).map(([name, [part, whole]]) =>
    [name, whole == null ? count(part) : `${share(part, whole)} (${count(part)} of ${count(whole)})`]);
  const sample = SAMPLED in figures ? await look("estimate").catch(() => null) : null; // an annex that may be missing here
  if (sample?.urls) {
    rows.push(["URLs that links lead to, as estimated so far", sample.urls.map(count).join(" to ")],
      ["pages among them", sample.pages.map(count).join(" to ")]);
  } else if (sample) {
    rows.push(["URLs that links lead to", "too few walks yet for an estimate"]);
  }
  return morph(place, table("What the spider counts, since its nodes started", [
    {title: "what", head: true, of: ([name]) => name},
    {title: "value", number: true, of: ([, value]) => value},
  ], rows));
}

function showRevisits({waiting, overdue, late_s: late, visits, unchanged}) {
  const rows = [["pages that wait for their next visit", count(waiting)], ["of these overdue", count(overdue)],
    ["visits come late by", span(late)]];
  if (visits) rows.push(["pages that were still as they are kept when visited again", `${share(unchanged, visits)} of ${count(visits)}`]);
  morph(byId("revisits"), table("How fresh pages are that are visited again", [
    {title: "what", head: true, of: ([name]) => name},
    {title: "value", number: true, of: ([, value]) => value},
  ], rows));
}

function showBlacklist({entries}) {
  const rows = Object.entries(entries);
  morph(byId("blacklist"), table(rows.length > 100 ? `100 of ${count(rows.length)} entries` : "Entries", [
    {title: "entry", head: true, of: ([entry]) => entry},
    {title: "set in", of: ([, where]) => (where === "settings" ? "the settings" : "by hand")},
  ], rows.slice(0, 100), "Nothing is on the blacklist. Hosts, sites and patterns that are never fetched would be here."));
}

function showPoliteness(speed, status) {
  const paused = speed.paused.map((name) => (name ? `node ${name}` : "the whole crawl")).join(", ");
  const rows = [
    ["speed now", speed.now],
    ["set by hand", speed.by_hand ?? "nothing"],
    ["in the settings", `${speed.settings || "no limit"}; times are in ${speed.time_zone}`],
    ["paused", paused || "nothing"],
    ["URLs that robots.txt forbids", count(status?.outcomes["dropped:forbidden"] ?? 0)],
    ["hosts that rest until their next fetch", count(status?.hosts.waiting)],
    ["hosts that rest for longer, because they failed", count(status?.hosts.snoozed)],
  ];
  const asked = status?.politeness;
  if (asked) rows.unshift(["a host rests", `${asked.host_delay_s} s at least`], ["robots.txt", asked.robots ? "obeyed" : "ignored"]);
  morph(byId("politeness-list"), table("What is in force", [
    {title: "rule", head: true, of: ([name]) => name},
    {title: "value", of: ([, value]) => value},
  ], rows));
}

/**
 * What each section reads while it is in view: seconds between two times, and how. `latest()` is the last status.
 * What waits for a disk, which may hang, has `apart`: the others do not wait for it.
 */
export function sectionReads(latest) {
  const [hosts, map] = [new HostList(), new PldMap()];
  return [
    {section: "failures", every: 10, read: async () => showErrors(await look("errors", {limit: 10}))},
    {section: "hosts", every: 30, read: () => hosts.read()},
    {section: "pages", every: 15, apart: true, read: async () => map.show(await look("plds", {limit: 100}))},
    {section: "pages", every: 10, read: () => showFigures(latest() ?? {})},
    {section: "nodes", every: 4, read: async () => showNodes(await look("nodes"))},
    {section: "nodes", every: 30, apart: true, read: async () => showDisks(await look("disks"))},
    {section: "budgets", every: 15, read: async () => showBlacklist(await look("blacklist"))},
    {section: "politeness", every: 10, read: async () => showPoliteness(await look("speed"), latest())},
  ];
}

/** What sections show of the status, which is read anyhow. */
export function showStatus(status, isInView) {
  const shows = {failures: showOutcomes, hosts: showHosts, nodes: showPartitions, queues: showQueues};
  for (const [section, show] of Object.entries(shows)) if (isInView(section)) show(status);
}
