// Search, token and the forms that change something.

import {change, look, token} from "./api.js";
import {byId, say} from "./dom.js";
import {found, hostTable} from "./tables.js";

const HOSTS = 25; // of a page
const words = (text) => text.split(/\s+/).filter(Boolean);

/** Show what the server says about a word; the search form then shows the same question. */
export async function lookUp(kind, word) {
  byId("kind").value = kind;
  byId("word").value = word;
  const place = byId("found");
  try {
    place.replaceChildren(...found(kind, word, await look(kind, {word}), lookUp));
  } catch (error) {
    place.textContent = error.message;
  }
  place.scrollIntoView({block: "nearest"});
}

export function listenToSearch() {
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    lookUp(byId("kind").value, byId("word").value.trim());
  });
  byId("word").addEventListener("input", () => {
    const text = byId("word").value;
    if (text.includes("://")) byId("kind").value = "explain";
    else if (byId("kind").value === "explain") byId("kind").value = "host";
  });
}

/** Which hosts are listed is asked for by hand: with a million hosts a listing costs the server a tenth of a second. */
export function listenToHosts() {
  let first = 0;
  const show = async () => {
    try {
      const {hosts} = await look("hosts", {state: byId("host-state").value, limit: HOSTS, first});
      byId("hosts").replaceChildren(hostTable(`Hosts from number ${first + 1} on, in the order of their due times`, hosts, lookUp));
      byId("hosts-next").disabled = hosts.length < HOSTS || first + HOSTS > 1000;
    } catch (error) {
      byId("hosts").textContent = error.message;
    }
    byId("hosts-before").disabled = !first;
  };
  const go = (to) => () => {
    first = Math.max(0, to());
    show();
  };
  byId("hosts-show").addEventListener("click", go(() => 0));
  byId("host-state").addEventListener("change", go(() => 0));
  byId("hosts-next").addEventListener("click", go(() => first + HOSTS));
  byId("hosts-before").addEventListener("click", go(() => first - HOSTS));
  return show;
}

/** What a form asks for: action, words and options. */
function callOf(form, verb) {
  const given = new FormData(form);
  const of = words(given.get("words") ?? "");
  const numbers = {};
  for (const name of ["urls", "pages", "depth", "delay"]) {
    if (given.get(name)) numbers[name] = Number(given.get(name));
  }
  const unset = verb === "unset";
  switch (form.dataset.action) {
    case "pause":
    case "awaken":
      return [verb, of, {}];
    case "speed":
      return ["speed", unset ? [] : words(given.get("text")), unset ? {unset: true} : {}];
    case "blacklist":
      return ["blacklist", [verb, ...of], {}];
    default:
      return [form.dataset.action, of, unset ? {unset: true} : numbers];
  }
}

const told = (data) => {
  const some = (list) => list?.length && list.join(", ");
  if (data.changed) return some(data.changed) || `nothing changed: ${some(data.unchanged) || "nothing was meant"}`;
  if (data.added) return some([...data.added, ...data.removed]) || "the blacklist is as before";
  if (data.now) return `the speed is ${data.now}`;
  if (data.name) return data.name;
  return "done";
};

export function listenToForms(onChange) {
  for (const form of document.querySelectorAll("#controls form")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const verb = event.submitter?.value ?? form.querySelector("button").value;
      const label = event.submitter?.textContent ?? verb;
      const [action, of, options] = callOf(form, verb);
      if (action === "pause" && !of.length && !confirm("Pause the whole crawl?")) return;
      say(byId("done"), `${label} …`);
      try {
        say(byId("done"), `${label}: ${told(await change(action, of, options))}`, "good");
        onChange();
      } catch (error) {
        say(byId("done"), error.message, "bad");
      }
    });
  }
}

/** Show what the token permits, and ask for one if none does. True: the page may ask for the crawl's figures. */
export async function showAccess() {
  const access = await look("access");
  byId("controls").disabled = !access.may_change;
  byId("token-form").hidden = !access.has_token;
  byId("token-forget").hidden = !token.get();
  const hint = access.may_change ? "" : access.has_token ? "Enter the token above to change something."
    : "Nothing can be changed here: the server has no BIGCRAWL_DASHBOARD_TOKEN.";
  say(byId("controls-hint"), hint, "hint");
  const wrong = token.get() && !access.may_change;
  say(byId("token-state"), wrong ? "This is not the token." : access.may_change ? "Controls are on." : "",
    wrong ? "bad" : "hint");
  if (!access.may_look) say(byId("state"), "Enter the token to see the crawl.", "warn");
  return access.may_look;
}

export function listenToToken(onNew) {
  const use = (text) => {
    token.set(text);
    byId("token").value = "";
    onNew();
  };
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    use(byId("token").value.trim());
  });
  byId("token-forget").addEventListener("click", () => use(""));
}
