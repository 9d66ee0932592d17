// The page's loop: what is asked for, how often, and where it is shown.

import {look} from "./api.js";
import {listenToForms, listenToHosts, listenToSearch, listenToToken, lookUp, showAccess} from "./controls.js";
import {byId, say} from "./dom.js";
import {History} from "./history.js";
import {Plots} from "./plots.js";
import {showBlacklist, showDisks, showErrors, showNodes, showPlds, showStatus} from "./tables.js";

const history = new History();
const plots = new Plots();
let status = null;

const draw = () => plots.draw(history.with(status), Number(byId("range").value));

/** What waits for a disk, which may hang: it is begun, unless it is under way, and the round goes on. */
function apart(read) {
  let underWay = null;
  return async () => {
    underWay ??= read().catch((error) => console.info(error.message)).finally(() => (underWay = null));
  };
}

// What is read again and again, and the seconds between two times. Only a page that is looked at asks.
const ROUNDS = [
  [2, async () => showStatus((status = await look("status")))],
  [10, () => history.read()],
  [4, async () => showNodes(await look("nodes"))],
  [15, async () => showErrors(await look("errors", {limit: 10}), lookUp)],
  [15, async () => showBlacklist(await look("blacklist"))],
  [15, async () => say(byId("speed-now"), `now: ${(await look("speed")).now}`, "hint")],
  [15, apart(async () => showPlds(await look("plds", {limit: 20}), lookUp))],
  [30, apart(async () => showDisks(await look("disks")))],
];
const due = new Map();

async function round() {
  for (const [seconds, read] of ROUNDS) {
    if ((due.get(read) ?? 0) > performance.now()) continue;
    await read();
    due.set(read, performance.now() + seconds * 1000);
  }
  draw();
}

let isRunning = false;

/** One round after the other; after an error, such as a node that has ended, it goes on trying. */
async function run() {
  if (isRunning) return;
  isRunning = true;
  try {
    if (!document.hidden && (await showAccess())) await round();
  } catch (error) {
    say(byId("state"), `No news: ${error.message}. Trying again …`, "bad");
  }
  isRunning = false;
}

function again() {
  due.clear();
  run();
}

const showHosts = listenToHosts();
listenToSearch();
listenToForms(again);
listenToToken(again);
byId("range").addEventListener("change", draw);
document.addEventListener("visibilitychange", run);
setInterval(run, 2000);
await run();
showHosts();
