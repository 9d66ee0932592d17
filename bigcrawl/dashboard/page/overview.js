// The first screen: what this crawl is, whether it is well, five figures with their trend, and one plot with events.
/* global TimePlot */

import {byId, make, morph} from "./dom.js";
import {at, bytes, count, plural, rate, share, span, steady, when} from "./format.js";
import {Window} from "./samples.js";

const HOUR_S = 3600;
const SIGNS = {good: "●", warn: "▲", bad: "✕", done: "■"};
const EVENTS_SHOWN = 8;

/** What a crawl does, in a word and a sentence, by its status; `kind` is good, warn, bad or done. */
export function stateOf(status) {
  const nodes = Object.keys(status.nodes).length;
  const {standstill: why, pages_per_s: pages} = status;
  if (status.finished) return {kind: "done", word: "Finished", why: sentence(why[0] ?? "the crawl is finished")};
  if (!nodes) return {kind: "bad", word: "Stopped", why: "No node runs. This is the crawl as it was left."};
  if (pages > 0) {
    const doing = `${plural(nodes, "node")} ${nodes === 1 ? "fetches" : "fetch"} ${steady(pages)} pages a second.`;
    return why.length ? {kind: "warn", word: "Coming to a stop", why: `${doing} But ${why[0]}.`}
      : {kind: "good", word: "Crawling", why: doing};
  }
  if (status.paused?.includes("")) return {kind: "warn", word: "Paused", why: sentence(why[0])};
  if (status.awaited_host) return {kind: "warn", word: "Waiting", why: sentence(why[0])};
  return {kind: "warn", word: "Standing still", why: sentence(why[0] ?? "the reason is not known yet")};
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** What the operator should know besides the state. */
function notices(status, state) {
  const found = status.standstill.filter((text) => !state.why.toLowerCase().includes(text.toLowerCase())).map(sentence);
  const {partitions, rejected, urls, log} = status;
  if (partitions.damaged) found.push(`${plural(partitions.damaged, "partition")} cannot be read: see scrapy frontier verify.`);
  if (rejected.entries) found.push(`${plural(rejected.entries, "inbox entry", "inbox entries")} could not be read: see scrapy frontier rejected.`);
  if (urls.dead) found.push(`${plural(urls.dead, "URL")} ${urls.dead === 1 ? "kills or hangs its" : "kill or hang their"} node: see scrapy frontier dead.`);
  if (urls.lost) found.push(`${plural(urls.lost, "URL")} ${urls.lost === 1 ? "was" : "were"} lost by a Redis that forgot them.`);
  if (log?.errors) found.push(make("a", {href: "#/live"}, `${plural(log.errors, "error")} and ${plural(log.warnings, "warning")} were logged.`));
  return found;
}

function identity(status, columns) {
  const since = status.since_s ?? columns.time_s[0];
  const seeds = status.seeds ?? [];
  const rows = [
    ["spider", status.spider],
    ["seeds", seeds.length ? seeds.slice(0, 3).join(", ") + (seeds.length > 3 ? " …" : "") : ""],
    ["since", since ? `${at(since)} (${span(Date.now() / 1000 - since)})` : ""],
    ["scope", status.scope],
    ["contact", status.contact],
    ["nodes", plural(Object.keys(status.nodes).length, "node")],
  ];
  return rows.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
}

/** A line of a figure's course, without axes. */
function spark(values) {
  const known = values.filter((value) => value != null);
  const svg = byId("spark").content.firstElementChild.cloneNode(true);
  const path = svg.firstElementChild;
  if (known.length > 1) {
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const of = (value) => 19 - (18 * (value - low)) / (high - low || 1);
    let isOpen = false;
    path.setAttribute("d", values.map((value, x) => {
      if (value == null) {
        isOpen = false;
        return "";
      }
      const point = `${isOpen ? "L" : "M"}${((100 * x) / (values.length - 1)).toFixed(1)} ${of(value).toFixed(1)}`;
      isOpen = true;
      return point;
    }).join(""));
  }
  return svg;
}

const waiting = (urls) => urls.inbox + urls.disk + urls.queued;
const failed = (status) => Object.entries(status.outcomes).reduce((all, [name, number]) =>
  (name.startsWith("error:") || /^status:[45]/.test(name) ? all + number : all), 0);

const added = (columns) => columns.reduce((all, values) => values.map((value, at) => (value == null ? null : (all[at] ?? 0) + value)), []);

function figures(status, hour, since) {
  const isYoung = since && Date.now() / 1000 - since < HOUR_S; // what grew in the last hour is then all there is
  const grown = (name) => hour.growth(name);
  const wait = added([hour.level("urls_inbox"), hour.level("urls_disk"), hour.level("urls_queued")]);
  const failures = ["errors", "status_4xx", "status_5xx"];
  const per = (names) => added(names.map(hour.rate));
  const best = Math.max(0, ...hour.rate("pages").filter((value) => value != null));
  const known = wait.filter((value) => value != null);
  const trend = known.length > 1 ? known.at(-1) - known[0] : 0;
  const lately = (number) => (number == null || isYoung ? "" : `+${count(number)} in the last hour`);
  const harvest = Object.entries(status.figures ?? {}).filter(([, [, whole]]) => whole)
    .map(([name, [part, whole]]) => `${name}: ${share(part, whole)}`);
  const fails = failures.map(grown).reduce((all, each) => (each == null ? all : (all ?? 0) + each), null);
  return [
    ["Pages", count(status.pages), [bytes(status.bytes), lately(grown("pages"))], hour.level("pages")],
    ["Pages a second", steady(status.pages_per_s), status.possible_per_s == null ? [`${steady(best)} at best in the last hour`]
      : [status.pages_per_s < status.possible_per_s ? `of some ${steady(status.possible_per_s)} possible now` : "as many as are possible now", status.possible_by ? `limited by ${status.possible_by}` : ""], hour.rate("pages")],
    ["URLs waiting", count(waiting(status.urls)), [status.done_in_s == null ? "nothing is fetched now"
      : `at least ${span(status.done_in_s)} at this rate`, trend && !isYoung ? `${trend > 0 ? "+" : "−"}${count(Math.abs(trend))} in the last hour` : ""], wait],
    ["Items", status.items == null ? "–" : count(status.items), status.items == null ? ["this node counts no items"]
      : !status.items ? ["none from this spider yet"]
        : [`${steady(status.items_per_s ?? 0)} a second`, harvest[0] ?? `${rate(status.items / Math.max(1, status.pages))} a page`],
      hour.rate("items")],
    ["Failures", count(failed(status)), [`${share(failed(status), status.urls.ended)} of the URLs that ended`, lately(fails)], per(failures)],
  ];
}

export class Overview {
  constructor() {
    this.plot = new TimePlot({title: "Pages and items a second", lines: ["pages", "items"], show: rate, height: 300});
    byId("plot").replaceChildren(this.plot.figure);
    this.isUpdated = "";
  }

  show(status, columns, events, seconds) {
    document.title = `${status.crawl}: ${stateOf(status).word} – bigcrawl`;
    byId("crawl").textContent = status.crawl;
    const state = stateOf(status);
    const place = byId("state");
    if (this.isUpdated !== state.word + status.standstill.join()) { // not for each new rate: it is read aloud
      byId("spoken").textContent = `${state.word}. ${state.why}`;
      this.isUpdated = state.word + status.standstill.join();
    }
    morph(place, make("span", {className: `sign ${state.kind}`, "aria-hidden": "true"}, SIGNS[state.kind]),
      make("p", {className: `word ${state.kind}`}, state.word), make("p", {className: "why"}, state.why));
    morph(byId("identity"), ...identity(status, columns));
    morph(byId("notices"), ...notices(status, state).map((text) => make("li", {}, text)));
    morph(byId("figures"), ...figures(status, new Window(columns, HOUR_S), status.since_s).map(([name, value, more, course]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, make("span", {className: "value"}, value),
        more.map((text) => make("span", {className: "more"}, text)), spark(course)))));
    this.draw(columns, events, seconds);
  }

  draw(columns, events, seconds) {
    const shown = new Window(columns, seconds);
    const listed = events?.events ?? [];
    this.plot.draw([shown.x, shown.rate("pages"), shown.rate("items")], {...shown, events: listed});
    morph(byId("events"), ...listed.slice(0, EVENTS_SHOWN).map((event) => make("li", {},
      make("span", {className: "sign", "aria-hidden": "true"}, TimePlot.SIGNS[event.kind] ?? "●"),
      make("time", {}, when(event.at)), " ", event.text || event.kind.replaceAll("_", " "))));
  }
}
