// Figures and tables of what the server says.

import {byId, listing, make, say, table} from "./dom.js";
import {bytes, count, local, rate, span} from "./format.js";

/** The crawl at a glance. */
export function showStatus(status) {
  document.title = `${status.crawl} – bigcrawl`;
  byId("crawl").textContent = status.crawl;
  const {hosts, urls, partitions} = status;
  const nodes = Object.keys(status.nodes).length;
  const figures = [
    ["Pages", count(status.pages), bytes(status.bytes)],
    ["Pages a second", rate(status.pages_per_s), status.done_in_s == null ? "" : `done in ${span(status.done_in_s)}`],
    ["URLs seen", count(urls.seen), `${count(urls.ended)} ended`],
    ["URLs that wait", count(urls.inbox + urls.disk + urls.queued), `${count(urls.queued)} in Redis`],
    ["Withheld", count(urls.withheld), "budgets, blacklist"],
    ["Hosts ready", count(hosts.ready), `${count(hosts.busy)} busy, ${count(hosts.waiting)} waiting`],
    ["Hosts that fail", count(hosts.snoozed + hosts.retired), `${count(hosts.retired)} retired`],
    ["Nodes", count(nodes), `${count(partitions.owned)} of ${count(partitions.all)} partitions owned`],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value, more]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value, make("small", {}, more)))));
  showNotices(status);
  const rows = Object.entries(status.outcomes).sort((one, other) => other[1] - one[1]);
  byId("outcomes").replaceChildren(table("URLs by outcome, the most frequent first", [
    {title: "outcome", head: true, of: ([name]) => name},
    {title: "URLs", number: true, of: ([, number]) => count(number)},
  ], rows.slice(0, 40)));
}

/** What the operator should know, and the one line of the crawl's state. */
function showNotices(status) {
  const notices = [...status.standstill];
  if (status.partitions.damaged) notices.push(`${count(status.partitions.damaged)} partitions are damaged: see scrapy frontier verify`);
  if (status.rejected.entries) notices.push(`${count(status.rejected.entries)} inbox entries could not be read: see scrapy frontier rejected`);
  if (status.urls.dead) notices.push(`${count(status.urls.dead)} URLs kill or hang their node: see scrapy frontier dead`);
  if (status.urls.lost) notices.push(`${count(status.urls.lost)} URLs were lost by a Redis that forgot them`);
  const list = byId("notices");
  if (list.textContent !== notices.join("")) list.replaceChildren(...notices.map((text) => make("li", {}, text)));
  const nodes = Object.keys(status.nodes).length;
  if (status.finished) say(byId("state"), "The crawl is finished.", "good");
  else if (!nodes) say(byId("state"), "No node runs; this is the crawl as it was left.", "warn");
  else if (status.standstill.length) say(byId("state"), "The crawl stands still; the reasons are below.", "warn");
  else say(byId("state"), `${nodes === 1 ? "1 node is" : `${nodes} nodes are`} crawling.`, "good");
}

export function showNodes({nodes}) {
  const stages = (row) => Object.entries(row.stages).map(([stage, number]) => `${count(number)} ${stage}`).join(", ");
  byId("nodes").replaceChildren(table("Nodes that live, or died lately", [
    {title: "node", head: true, of: (row) => row.node},
    {title: "state", of: (row) => (row.trouble ? `${row.state}; waits: ${row.trouble}` : row.state)},
    {title: "heard", number: true, of: (row) => `${span(row.last_heard_s)} ago`},
    {title: "up", number: true, of: (row) => span(row.up_s)},
    {title: "partitions", number: true, of: (row) => count(row.partitions)},
    {title: "pages", number: true, of: (row) => count(row.pages)},
    {title: "pages/s", number: true, of: (row) => rate(row.pages_per_s)},
    {title: "URLs held", of: stages},
    {title: "fetches at most", number: true, of: (row) => count(row.fetches_max)},
    {title: "outbox", number: true, of: (row) => (row.crowded ? `${count(row.outbox)}, full` : count(row.outbox))},
    {title: "late", number: true, of: (row) => span(row.late_ms / 1000)},
  ], nodes, "no node runs"));
}

/** A button that looks a word up. */
const asked = (kind, word, onLook) =>
  make("button", {type: "button", className: "link", onclick: () => onLook(kind, word)}, word);

export function showErrors({errors}, onLook) {
  byId("errors").replaceChildren(table("Failed tries by reason, with the site that fails most and its last URL", [
    {title: "reason", head: true, of: (row) => row.reason},
    {title: "tries", number: true, of: (row) => count(row.fetches)},
    {title: "PLDs", number: true, of: (row) => count(row.plds)},
    {title: "most at", of: (row) => asked("pld", row.worst[0].pld, onLook)},
    {title: "last", of: (row) => local(row.worst[0].last)},
    {title: "example", of: (row) => row.worst[0].example && asked("explain", row.worst[0].example, onLook)},
  ], errors.slice(0, 30), "nothing has failed"));
  const failed = new Map();
  for (const {reason, worst} of errors) {
    for (const {pld, fetches} of worst) {
      const row = failed.get(pld) ?? {pld, fetches: 0, reasons: []};
      row.fetches += fetches;
      row.reasons.push(reason);
      failed.set(pld, row);
    }
  }
  const rows = [...failed.values()].sort((one, other) => other.fetches - one.fetches).slice(0, 20);
  byId("failing").replaceChildren(table("Pay-level domains with most failed tries", [
    {title: "PLD", head: true, of: (row) => asked("pld", row.pld, onLook)},
    {title: "failed tries", number: true, of: (row) => count(row.fetches)},
    {title: "reasons", of: (row) => row.reasons.slice(0, 4).join(", ")},
  ], rows, "nothing has failed"));
}

export function showPlds({plds, pages}, onLook) {
  byId("plds").replaceChildren(table("Pay-level domains with most pages; budgets are URLs a turn", [
    {title: "PLD", head: true, of: (row) => asked("pld", row.pld, onLook)},
    {title: "pages", number: true, of: (row) => count(row.pages)},
    {title: "share", number: true, of: (row) => `${((100 * row.pages) / pages).toFixed(1)} %`},
    {title: "bytes", number: true, of: (row) => bytes(row.bytes)},
    {title: "linked from", number: true, of: (row) => (row.in_degree == null ? "" : count(row.in_degree))},
    {title: "budget", number: true, of: (row) => (row.budget == null ? "none" : count(row.budget))},
    {title: "set by", of: (row) => row.budget_set_by ?? ""},
  ], plds, "no page is counted yet"));
}

export function hostTable(caption, hosts, onLook) {
  return table(caption, [
    {title: "host", head: true, of: (row) => asked("host", row.host, onLook)},
    {title: "state", of: (row) => row.state},
    {title: "due in", number: true, of: (row) => (row.due_in_s == null ? "" : span(row.due_in_s))},
    {title: "queued", number: true, of: (row) => count(row.queued)},
    {title: "taken", number: true, of: (row) => count(row.taken)},
    {title: "rests", number: true, of: (row) => span(row.rest_s)},
    {title: "failures", of: (row) => (row.failures ? `${count(row.failures)} ${row.why}` : "")},
  ], hosts, "no host in Redis is like that");
}

export function showDisks({disks}) {
  byId("disks").replaceChildren(table("Disks as the machine that serves this page has them", [
    {title: "what is there", head: true, of: ([name]) => ({state: "state of the crawl", warc: "WARC files"})[name] ?? name},
    {title: "free", number: true, of: ([, disk]) => bytes(disk.free)},
    {title: "size", number: true, of: ([, disk]) => bytes(disk.size)},
    {title: "used", of: ([, disk]) => make("meter", {min: 0, max: disk.size, value: disk.size - disk.free,
      high: disk.size * 0.9, title: `${Math.round(100 - (100 * disk.free) / disk.size)} % used`})},
  ], Object.entries(disks), "no disk answers"));
}

export function showBlacklist({entries}) {
  const rows = Object.entries(entries);
  byId("blacklist").replaceChildren(table(`${count(rows.length)} entries, of which at most 100 are shown`, [
    {title: "entry", head: true, of: ([entry]) => entry},
    {title: "set in", of: ([, where]) => (where === "settings" ? "the settings" : "by hand")},
  ], rows.slice(0, 100), "nothing is on the blacklist"));
}

const shown = (name, value) => {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? String(value) : local(value);
};

/** What an action says about a URL, host, PLD or name. */
export function found(kind, word, data, onLook) {
  const {hosts, ...rest} = data;
  const parts = [listing(`${kind} ${word}`, rest, shown)];
  if (hosts) parts.push(hostTable(`Hosts of ${word} in Redis, most URLs first`, hosts, onLook));
  return parts;
}
