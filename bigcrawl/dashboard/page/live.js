// What happens now: warnings and errors of all nodes, the last fetches and items; other crawls of this Redis, jobs of scrapyd.

import {ApiError, look} from "./api.js";
import {byId, empty, make, morph, siteLink, table} from "./dom.js";
import {bytes, count, when} from "./format.js";

const OLDER = "This node is of an older version and does not answer this question.";

const unknown = new Set();

/** What an action says; null if this server does not know the action, which is asked once. */
async function ifKnown(action) {
  if (unknown.has(action)) return null;
  try {
    return await look(action);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    unknown.add(action);
    return null;
  }
}

const kindOf = (row) => {
  if (row.outcome?.startsWith("dropped")) return "warn";
  return row.status == null || row.status >= 400 ? "bad" : "good";
};

let recent = null;
const filter = () => byId("log-filter").value.trim().toLowerCase();

function showLog() {
  const wanted = filter();
  const rows = (recent?.log ?? []).filter((row) => `${row.text} ${row.logger} ${row.node} ${row.level}`.toLowerCase().includes(wanted));
  const without = wanted ? `No line has “${wanted}”.` : "No warning or error was logged. Those of all nodes would be here, repeated ones counted.";
  morph(byId("log"), recent == null ? empty(OLDER) : rows.length ? make("ol", {className: "lines-list"}, rows.map((row) => make("li", {},
    make("span", {className: `tag ${row.level === "WARNING" ? "warn" : "bad"}`}, row.level.toLowerCase()),
    make("time", {}, when(row.at)), make("span", {className: "hint"}, `${row.node} ${row.logger}`),
    row.count > 1 ? make("b", {}, `${count(row.count)} times`) : null, make("span", {className: "text"}, row.text)))) : empty(without));
}

function showRecent() {
  showLog();
  morph(byId("fetches"), recent == null ? empty(OLDER) : table("The last fetches of all nodes", [
    {title: "URL", head: true, of: (row) => siteLink("url", row.url)},
    {title: "at", number: true, of: (row) => when(row.at)},
    {title: "status", of: (row) => make("span", {className: kindOf(row)}, row.status == null ? row.outcome : String(row.status))},
    {title: "took", number: true, of: (row) => (row.ms == null ? "" : `${count(row.ms)} ms`)},
    {title: "size", number: true, of: (row) => bytes(row.bytes)},
  ], recent.fetches.slice(0, 12), "Nothing was fetched yet. Each fetch would be a row, with status and time."));
  morph(byId("items"), recent == null ? empty(OLDER) : table("The last items", [
    {title: "at", head: true, of: (row) => when(row.at)},
    {title: "item", of: (row) => make("code", {}, row.text)},
    {title: "node", of: (row) => row.node},
  ], recent.items.slice(0, 12), "The spider has yielded no item yet. The last ones would be here."));
}

async function readRecent() {
  recent = await ifKnown("recent");
  showRecent();
}

async function readCrawls() {
  const data = await ifKnown("crawls");
  morph(byId("crawls-list"), data == null ? empty(OLDER) : table("Crawls of this Redis", [
    {title: "crawl", head: true, of: (row) => row.crawl},
    {title: "spider", of: (row) => row.spider ?? ""},
    {title: "state", of: (row) => make("span", {className: {runs: "good", finished: "", paused: "warn", stopped: "bad"}[row.state] ?? ""}, row.state)},
    {title: "nodes", number: true, of: (row) => count(row.nodes)},
    {title: "pages", number: true, of: (row) => count(row.pages)},
    {title: "waiting", number: true, of: (row) => count(row.waiting)},
    {title: "last sign of life", number: true, of: (row) => when(row.last_s)},
  ], data.crawls, "This Redis has no other crawl."));
}

async function readJobs() {
  const data = await ifKnown("jobs");
  const place = byId("jobs");
  if (data == null || data.scrapyd == null) {
    return morph(place, empty("No scrapyd is named. With BIGCRAWL_DASHBOARD_SCRAPYD its jobs would be here."));
  }
  if (data.error) return morph(place, empty(`scrapyd at ${data.scrapyd} does not answer: ${data.error}`));
  return morph(place, table(`Jobs of scrapyd at ${data.scrapyd}`, [
    {title: "job", head: true, of: (row) => row.job},
    {title: "spider", of: (row) => `${row.project}: ${row.spider}`},
    {title: "state", of: (row) => row.state},
    {title: "start", number: true, of: (row) => (typeof row.start === "number" ? when(row.start) : row.start ?? "")},
    {title: "end", number: true, of: (row) => (typeof row.end === "number" ? when(row.end) : row.end ?? "")},
  ], data.jobs, "scrapyd has no job."));
}

export const liveReads = [
  {section: "live", every: 2, read: readRecent},
  {section: "crawls", every: 10, read: readCrawls},
  {section: "crawls", every: 30, apart: true, read: readJobs},
];

export function listenToLog() {
  byId("log-filter").addEventListener("input", showLog);
}

/** The events of the crawl; null if this server does not know the action. */
export const readEvents = () => ifKnown("events");
