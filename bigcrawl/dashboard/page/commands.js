// What an operator can change: what each change will do, said before it is done, and how it is undone.

import {change, look} from "./api.js";
import {byId, make} from "./dom.js";
import {span} from "./format.js";

const names = (words) => words.join(", ");
const call = (action, words = [], options = {}) => ({action, words, options});
const numbers = (values) => Object.fromEntries(Object.entries(values).filter(([name, value]) =>
  name !== "words" && name !== "text" && value !== "").map(([name, value]) => [name, Number(value)]));

/** The calls that bring back a rule that was set by hand or in the settings before. */
function ruleCalls(action, words, rule, options) {
  const old = Object.fromEntries(Object.entries(rule ?? {}).map(([name, value]) => [options[name] ?? name, value]));
  const set = Object.keys(old).length ? [call(action, words, old)] : [];
  return [call(action, words, {unset: true}), ...set];
}

const LIMITS = {budget: "urls"};
const DELAYS = {pld_delay: "pld-delay"};

/**
 * Each change: its label; `will(words, values)`, what it does; `calls`, what is sent; `before(words)`, what is read first;
 * `undo(words, before, answers)`, the calls of its inverse. Without `undo` the operator is asked.
 */
export const CHANGES = {
  pause: {
    label: "Pause",
    will: (words) => (words.length ? `From within a second on, no page of ${names(words)} is fetched; what waits stays on disk.`
      : "All nodes end the fetches under way and begin none. Nothing is lost."),
    calls: (words) => [call("pause", words)],
    undo: (words, _, [{changed}]) => (changed.length ? [call("resume", words.length ? changed.map(bare) : [])] : []),
  },
  resume: {
    label: "Resume",
    will: (words) => (words.length ? `${names(words)} ${words.length > 1 ? "are" : "is"} fetched again, within a second.`
      : "All nodes fetch again, within a second."),
    calls: (words) => [call("resume", words)],
    undo: (words, _, [{changed}]) => (changed.length ? [call("pause", words.length ? changed.map(bare) : [])] : []),
  },
  speed: {
    label: "Set the speed",
    will: (_, {text}) => (text ? `All nodes together keep to ${text}, whatever the settings say, until that is undone.`
      : "All nodes together keep to a speed, such as 80/s 08:00-18:00; 180/s."),
    calls: (_, {text}) => [call("speed", text.split(/\s+/).filter(Boolean))],
    before: () => look("speed"),
    undo: (_, before) => [before.by_hand == null ? call("speed", [], {unset: true}) : call("speed", before.by_hand.split(/\s+/))],
  },
  "speed-unset": {
    label: "Back to the settings",
    will: () => "The speed set by hand is removed; that of the settings holds.",
    calls: () => [call("speed", [], {unset: true})],
    before: () => look("speed"),
    undo: (_, before) => (before.by_hand == null ? [] : [call("speed", before.by_hand.split(/\s+/))]),
  },
  blacklist: {
    label: "Blacklist",
    will: (words) => `URLs of ${names(words) || "these"} are not fetched, and wait on disk until the entry is removed.`,
    calls: (words) => [call("blacklist", ["add", ...words])],
    undo: (_, __, [{added}]) => (added.length ? [call("blacklist", ["remove", ...added])] : []),
  },
  "blacklist-remove": {
    label: "Remove from the blacklist",
    will: (words) => `URLs of ${names(words) || "these"} that wait on disk are queued again.`,
    calls: (words) => [call("blacklist", ["remove", ...words])],
    undo: (_, __, [{removed}]) => (removed.length ? [call("blacklist", ["add", ...removed])] : []),
  },
  budget: {
    label: "Set limits",
    will: (words, values) => limitsText(words, values),
    calls: (words, values) => [call("budget", words, numbers(values))],
    before: (words) => look("budget", {word: words[0]}),
    undo: (words, before) => ruleCalls("budget", words, before.rule_by_hand ?? before.rule_of_settings, LIMITS),
  },
  "budget-unset": {
    label: "Remove the rule",
    will: (words) => `${names(words) || "The site"} gets the budget of the policy again.`,
    calls: (words) => [call("budget", words, {unset: true})],
    before: (words) => look("budget", {word: words[0]}),
    undo: (words, before) => ruleCalls("budget", words, before.rule_by_hand ?? before.rule_of_settings, LIMITS).slice(1),
  },
  delay: {
    label: "Set the delay",
    will: (words, {delay}) => `Each host of ${names(words) || "the site"} rests ${delay ? span(Number(delay)) : "so long"} between two fetches; `
      + "a longer Crawl-delay in its robots.txt still holds.",
    calls: (words, values) => [call("delay", words, numbers(values))],
    before: (words) => look("delay", {word: words[0]}),
    undo: (words, before) => ruleCalls("delay", words, before.rule, DELAYS),
  },
  "delay-unset": {
    label: "Remove the rule",
    will: (words) => `${names(words) || "The site"} gets the delay of the settings again.`,
    calls: (words) => [call("delay", words, {unset: true})],
    before: (words) => look("delay", {word: words[0]}),
    undo: (words, before) => ruleCalls("delay", words, before.rule, DELAYS).slice(1),
  },
  awaken: {
    label: "Awaken",
    will: (words) => `The failures of ${names(words) || "the hosts"} are forgotten, and the next fetch is due at once. This cannot be undone: `
      + "a host that still fails is tried again from the shortest rest on.",
    calls: (words) => [call("awaken", words)],
  },
};

/** A name as `pause` prints it: a node's has a word before it. */
const bare = (name) => name.replace(/^(node|crawl) /, "");

function limitsText(words, {urls, pages, depth}) {
  const parts = [urls && `${urls} URLs a turn`, pages && `${pages} URLs in total`, depth && `links up to depth ${depth}`].filter(Boolean);
  return `${names(words) || "The site"} gets ${parts.join(", ") || "the limits that are given"}, in place of its budget. URLs beyond wait on disk.`;
}

/** Ask a question in the page. True: the operator agrees. */
function agrees(title, text) {
  return new Promise((resolve) => {
    const dialog = byId("question");
    byId("question-title").textContent = `${title}?`;
    byId("question-text").textContent = text;
    byId("question-yes").textContent = title;
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), {once: true});
    dialog.showModal();
  });
}

/** Show in the bar at the bottom what was done, with a button for its inverse. */
function tell(text, kind, undo = null) {
  const bar = byId("done");
  const button = undo && make("button", {type: "button", onclick: undo}, "Undo");
  const close = make("button", {type: "button", onclick: () => bar.replaceChildren()}, "Close");
  bar.replaceChildren(make("p", {className: kind}, text), ...(button ? [button] : []), close);
}

async function send(calls) {
  const answers = [];
  for (const {action, words, options} of calls) answers.push(await change(action, words, options));
  return answers;
}

const listed = (list) => list?.length && list.join(", ");

function outcome(data) {
  if (data.changed) return listed(data.changed) || `nothing changed: ${listed(data.unchanged) || "nothing was meant"}`;
  if (data.added) return listed([...data.added, ...data.removed]) || "the blacklist is as before";
  if (data.awakened) return listed(data.awakened) || `${listed(data.well) || "no host"} has not failed`;
  if (data.now) return `the speed is ${data.now}`;
  return data.name ?? "done";
}

/** Make a change: ask if it has no inverse, and offer its inverse if it has one. */
export async function run(key, words, values, onDone) {
  const {label, will, calls, before, undo} = CHANGES[key];
  if (!undo && !(await agrees(label, will(words, values)))) return;
  tell(`${label} …`, "");
  try {
    const old = await before?.(words);
    const answers = await send(calls(words, values));
    const inverse = undo?.(words, old, answers) ?? [];
    const undone = async () => {
      try {
        await send(inverse);
        tell(`Undone: ${label.toLowerCase()}, ${outcome(answers[0])}`, "good");
        onDone();
      } catch (error) {
        tell(error.message, "bad");
      }
    };
    tell(`${label}: ${outcome(answers[0])}`, "good", inverse.length ? undone : null);
    onDone();
  } catch (error) {
    tell(error.message, "bad");
  }
}
