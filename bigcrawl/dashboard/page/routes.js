// Addresses within the page: #/failures and other sections, and #/host/NAME, #/pld/NAME, #/url/URL.

import {byId} from "./dom.js";

const KINDS = ["host", "pld", "url"];

/** The place that the address names: {kind, name} of a site's page, or {section}, empty for the first screen. */
export function route() {
  const [, first = "", ...rest] = location.hash.split("/");
  if (!KINDS.includes(first) || !rest.length) return {section: first};
  try {
    return {kind: first, name: decodeURIComponent(rest.join("/"))};
  } catch {
    return {section: ""};
  }
}

export const go = (kind, name) => (location.hash = `#/${kind}/${encodeURIComponent(name)}`);

/** Which sections are in view, or nearly. */
export class InView {
  constructor(onChange) {
    this.sections = new Set();
    const observer = new IntersectionObserver((entries) => {
      for (const {target, isIntersecting} of entries) {
        this.sections[isIntersecting ? "add" : "delete"](target.dataset.section);
      }
      onChange();
    }, {rootMargin: "150px"});
    document.querySelectorAll("[data-section]").forEach((each) => observer.observe(each));
  }

  has = (section) => this.sections.has(section);
}

/** What a word in the search field most likely is. */
export const kindOf = (word) => (word.includes("://") ? "url" : "");

export function listenToSearch() {
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const word = byId("word").value.trim();
    if (word) go(byId("kind").value, word);
  });
  byId("word").addEventListener("input", () => {
    const isUrl = kindOf(byId("word").value) === "url";
    if (isUrl) byId("kind").value = "url";
    else if (byId("kind").value === "url") byId("kind").value = "host";
  });
}
