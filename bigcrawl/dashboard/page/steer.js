// The forms that change something: one for each kind of change, with what each button will do.

import {byId, make} from "./dom.js";
import {CHANGES, run} from "./commands.js";

const NAME = {name: "words", label: "Site", placeholder: "example.com", wide: true, required: true};
const FORMS = {
  pause: {title: "Pause and resume", fields: [{...NAME, label: "Nodes, hosts or PLDs; empty: the whole crawl", placeholder: "", required: false}],
    changes: ["pause", "resume"]},
  speed: {title: "Speed of the whole crawl", fields: [{name: "text", label: "Speed", placeholder: "80/s 08:00-18:00; 180/s", wide: true}],
    changes: ["speed", "speed-unset"]},
  blacklist: {title: "Blacklist", fields: [{...NAME, label: "Host, PLD, *.name, re:pattern or address range"}],
    changes: ["blacklist", "blacklist-remove"]},
  budget: {title: "Limits of a site", fields: [NAME, {name: "urls", label: "URLs a turn", type: "number"},
    {name: "pages", label: "URLs in total", type: "number"}, {name: "depth", label: "Depth", type: "number"}], changes: ["budget", "budget-unset"]},
  delay: {title: "Delay of a site", fields: [NAME, {name: "delay", label: "Seconds that each host rests", type: "number", step: "any"}],
    changes: ["delay", "delay-unset"]},
  awaken: {title: "Awaken hosts", fields: [{...NAME, label: "Retired or snoozed hosts"}], changes: ["awaken"]},
};

let mayChange = false;

/** Turn all forms on or off. */
export function permit(may) {
  mayChange = may;
  document.querySelectorAll("fieldset.change").forEach((each) => (each.disabled = !may));
}

/** A form; with a `name` it is about that site, and has no field for it. */
function form(key, name, onDone) {
  const {title, fields, changes} = FORMS[key];
  const id = `${name == null ? "steer" : "site"}-${key}`;
  const inputs = fields.filter((field) => name == null || field.name !== "words").map((field) => ({field, input: make("input", {
    id: `${id}-${field.name}`, name: field.name, type: field.type ?? "text", placeholder: field.placeholder ?? "", spellcheck: false,
    autocapitalize: "none", autocomplete: "off", ...(field.type === "number" ? {min: 0, step: field.step ?? 1} : {})})}));
  const given = () => {
    const values = Object.fromEntries(inputs.map(({field, input}) => [field.name, input.value.trim()]));
    return [name == null ? (values.words ?? "").split(/\s+/).filter(Boolean) : [name], values];
  };
  const rows = changes.map((each) => {
    const will = make("p", {className: "will", id: `${id}-${each}-will`});
    const button = make("button", {value: each, "aria-describedby": will.id}, CHANGES[each].label);
    return {each, will, button};
  });
  const foretell = () => rows.forEach(({each, will}) => (will.textContent = CHANGES[each].will(...given())));
  foretell();
  const made = make("form", {"data-change": key, "aria-labelledby": `${id}-title`},
    make("fieldset", {className: "change", disabled: !mayChange}, make("legend", {id: `${id}-title`}, title),
      make("div", {className: "fields"}, inputs.map(({field, input}) => make("label", {className: field.wide ? "wide" : ""}, field.label, input))),
      make("div", {className: "verbs"}, rows.flatMap(({will, button}) => [button, will]))));
  made.addEventListener("input", foretell);
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const verb = event.submitter?.value ?? changes[0];
    const [words, values] = given();
    const missing = name == null && fields.some((field) => field.required) && !words.length;
    if (missing) return inputs[0].input.focus();
    return run(verb, words, values, onDone);
  });
  return made;
}

export function showForms(onDone) {
  byId("forms").replaceChildren(...Object.keys(FORMS).map((key) => form(key, null, onDone)));
}

/** The forms for a site: a host has no budget of its own, and only a host that fails can be awakened. */
export const siteForms = (kind, name, onDone) =>
  (kind === "host" ? ["pause", "delay", "awaken"] : ["pause", "budget", "delay"]).map((key) => form(key, name, onDone));
