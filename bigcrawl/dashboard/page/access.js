// The token, and what it permits.

import {look, token} from "./api.js";
import {byId, say} from "./dom.js";
import {permit} from "./steer.js";

/** Show what the token permits, and ask for one if none does. True: the page may ask for the crawl's figures. */
export async function showAccess() {
  const access = await look("access");
  permit(access.may_change);
  byId("token-form").hidden = !access.has_token;
  byId("token-forget").hidden = !token.get();
  byId("token").hidden = byId("token-use").hidden = byId("token-label").hidden = access.may_change;
  const hint = access.may_change ? "" : access.has_token ? "Enter the token at the top of the page to change something."
    : "Nothing can be changed here: the server has no BIGCRAWL_DASHBOARD_TOKEN.";
  document.querySelectorAll(".change-hint").forEach((each) => say(each, hint, "hint change-hint"));
  const wrong = token.get() && !access.may_change;
  say(byId("token-state"), wrong ? "This is not the token." : access.may_change ? "Controls are on." : "", wrong ? "bad" : "hint");
  if (!access.may_look) say(byId("trouble"), "Enter the token to see the crawl.", "warn");
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
