// The page's loop: what is read, how often, and where it is shown. Only what is in view is read, and only while it is looked at.

import {look} from "./api.js";
import {listenToToken, showAccess} from "./access.js";
import {byId, say} from "./dom.js";
import {listenToLog, liveReads, readEvents} from "./live.js";
import {Overview} from "./overview.js";
import {InView, listenToSearch, route} from "./routes.js";
import {History, Window} from "./samples.js";
import {SectionPlots, sectionReads, showStatus} from "./sections.js";
import {SitePage} from "./site.js";
import {showForms} from "./steer.js";

const EVERY_S = 2;
const SITE_MS = {host: 5000, pld: 60000, url: 60000}; // those of a PLD read all its hosts, those of a URL files
const EARLY_MS = 250; // a round may begin a little before it would be due

const history = new History();
const overview = new Overview();
const plots = new SectionPlots();
const site = new SitePage(again);
const inView = new InView(() => {
  draw();
  run();
});
let status = null;
let events = null;
let place = {section: ""};

const seconds = () => Number(byId("range").value);

function draw() {
  if (!status || place.kind) return;
  const columns = history.with(status);
  overview.show(status, columns, events, seconds());
  showStatus(status, inView.has);
  plots.draw(new Window(columns, seconds()), inView.has);
}

const READS = [
  {every: EVERY_S, isDrawn: true, read: async () => (status = await look("status"))},
  {every: 10, isDrawn: true, read: () => history.read()},
  {every: 10, isDrawn: true, read: async () => (events = await readEvents())},
  ...sectionReads(() => status),
  ...liveReads,
];
const due = new Map();
const underWay = new Set();

const isDue = ({section}, at) => (!section || inView.has(section)) && !underWay.has(at) && (due.get(at) ?? 0) <= performance.now();

async function round() {
  if (place.kind) {
    if ((due.get("site") ?? 0) > performance.now()) return;
    status ??= await look("status");
    byId("crawl").textContent = status.crawl;
    const {kind, name} = place;
    await site.read();
    if (place.kind === kind && place.name === name) due.set("site", performance.now() + SITE_MS[kind]);
    return;
  }
  const isFirst = !status; // then each part is drawn as it comes
  const wanted = [...READS.entries()].filter(([at, each]) => isDue(each, at));
  const last = wanted.findLast(([, each]) => each.isDrawn)?.[0];
  for (const [at, each] of wanted) {
    const next = performance.now() + each.every * 1000 - EARLY_MS;
    if (each.apart) {
      underWay.add(at);
      each.read().catch((error) => console.info(error.message)).finally(() => underWay.delete(at));
    } else {
      await each.read();
      if (at === last || (isFirst && each.isDrawn)) draw(); // the first screen before all else
    }
    due.set(at, next);
    if (place.kind) return;
  }
}

let isRunning = false;
let isWanted = false;

/** One round after the other; after an error, such as a node that has ended, it goes on trying. */
async function run() {
  isWanted = isRunning;
  if (isRunning) return;
  isRunning = true;
  try {
    if (!document.hidden && (await showAccess())) {
      await round();
      say(byId("trouble"), "");
    }
  } catch (error) {
    say(byId("trouble"), `No news: ${error.message}. Trying again …`, "bad");
  }
  isRunning = false;
  if (isWanted) run();
}

function again() {
  due.clear();
  run();
}

function follow() {
  const before = place.kind;
  place = route();
  byId("overview").hidden = Boolean(place.kind);
  byId("site").hidden = !place.kind;
  due.clear();
  if (place.kind) {
    site.open(place.kind, place.name);
    scrollTo(0, 0);
  } else {
    const target = place.section && document.querySelector(`[data-section="${CSS.escape(place.section)}"]`);
    if (target) target.scrollIntoView();
    else if (before) scrollTo(0, 0);
  }
  run();
}

showForms(again);
listenToSearch();
listenToLog();
listenToToken(again);
byId("range").addEventListener("change", draw);
addEventListener("hashchange", follow);
document.addEventListener("visibilitychange", run);
setInterval(run, EVERY_S * 1000);
follow();
