// Runs in a page before its own scripts: notes timers, changes, addresses that scripts set, and shadow trees, and shows
// them to the renderer as `__bigcrawl`. A page may break it for itself, and then is taken as it is.
(() => {
  if (window !== window.top || window.__bigcrawl) return;
  const TIMER_MS = 5000, TIMERS_MS = 6000, STILL_MS = 150, LOOK_MS = 40, NESTED_MAX = 5;
  const URLS_MAX = 20000, NODES_MAX = 300000;
  const MORE = /^\W*(?:(?:load|show|view|see) (?:\d+ )?(?:more|all)\b.{0,20}|more\b.{0,20}|next\b.{0,20}|older\b.{0,20}|mehr\b.{0,20}|weitere\b.{0,20}|nächste\b.{0,10}|(?:voir|afficher) plus|suivante?|(?:ver|cargar|mostrar) más|siguiente|mostra altr.|avanti|ещё|далее|次へ|もっと見る|下一页|加载更多)\W*$/i;
  const setTimer = window.setTimeout.bind(window), clearTimer = window.clearTimeout.bind(window);
  const waiting = new Map(), roots = new Map(), urls = new Set(), seen = new Set(), clicked = new WeakSet();
  let depth = 0, changed = performance.now(), shown = new Set();

  const note = (url) => {
    try {
      if (url != null && urls.size < URLS_MAX) urls.add(new URL(url, document.baseURI).href);
    } catch { /* no address */ }
  };
  const observer = new MutationObserver(() => { changed = performance.now(); });
  const observe = (node) => observer.observe(node, { childList: true, subtree: true, characterData: true });
  observe(document);

  window.setTimeout = function (work, ms, ...given) {
    if (typeof work !== "function" || !(Number(ms || 0) <= TIMER_MS) || depth >= NESTED_MAX) return setTimer(work, ms, ...given);
    const level = depth + 1;
    const id = setTimer(function (...all) {
      waiting.delete(id);
      const before = depth;
      depth = level;
      try { work.apply(this, all); } finally { depth = before; }
    }, ms, ...given);
    waiting.set(id, true);
    return id;
  };
  window.clearTimeout = (id) => { waiting.delete(id); clearTimer(id); };
  for (const name of ["pushState", "replaceState"]) {
    const before = history[name];
    history[name] = function (state, title, url) {
      note(url);
      return before.apply(this, arguments);
    };
  }
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    if (roots.size < 10000) { roots.set(this, root); observe(root); }
    return root;
  };
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"]) delete window[name];

  function* trees() {
    yield document;
    for (const [host, root] of roots) if (host.isConnected) yield root;
    for (const host of document.querySelectorAll("*")) if (host.shadowRoot && !roots.has(host)) { roots.set(host, host.shadowRoot); yield host.shadowRoot; }
  }
  const all = function* (selector) { for (const tree of trees()) yield* tree.querySelectorAll(selector); };
  const isVisible = (element) => element.getClientRects().length > 0;
  const isView = (href) => /^\/?#[/!]./.test(href);

  const collect = () => {
    for (const element of all("a[href],area[href]")) {
      if (seen.size >= URLS_MAX) break;
      if (!isView(element.getAttribute("href"))) seen.add(element.href);
    }
    return seen.size + urls.size;
  };
  const quiet = (most) => new Promise((resolve) => {
    const began = performance.now();
    const look = () => {
      const now = performance.now(), over = now - began;
      const still = now - Math.max(changed, began) >= STILL_MS && document.readyState === "complete";
      if (still && (waiting.size === 0 || over >= TIMERS_MS)) resolve(true);
      else if (over >= most) resolve(false);
      else setTimer(look, LOOK_MS);
    };
    setTimer(look, LOOK_MS);
  });
  const scroll = () => {
    let moved = false;
    const down = (element) => {
      const before = element.scrollTop;
      element.scrollTop = element.scrollHeight;
      moved = moved || element.scrollTop > before;
    };
    down(document.scrollingElement || document.documentElement);
    let looked = 0;
    for (const element of all("div,ul,ol,main,section,tbody")) {
      if (looked++ > 5000) break;
      if (element.scrollHeight > element.clientHeight + 50 && element.clientHeight > 100 && /auto|scroll/.test(getComputedStyle(element).overflowY)) down(element);
    }
    return moved;
  };
  const isButton = (element) => {
    if (element.disabled || clicked.has(element) || !isVisible(element)) return false;
    const text = (element.innerText || element.getAttribute("aria-label") || element.value || "").trim();
    if (!text || text.length > 40 || !MORE.test(text)) return false;
    if (element.localName === "a") return /^(?:$|#|javascript:)/.test(element.getAttribute("href") || "") && !isView(element.getAttribute("href") || "");
    return !(element.form && element.type === "submit") && !element.closest("form[method=post i]");
  };
  const press = () => {
    for (const element of all("button,a,[role=button],input[type=button]")) {
      if (!isButton(element)) continue;
      element.click();
      return true;
    }
    return false;
  };
  // A button that has shown nothing new is not pressed again.
  const giveUp = () => { for (const element of all("button,a,[role=button],input[type=button]")) if (isButton(element)) { clicked.add(element); return; } };
  const views = (most) => {
    const found = new Set();
    for (const element of all("a[href*='#']")) {
      const href = element.getAttribute("href");
      if (isView(href)) found.add(href.replace(/^\//, ""));
      if (found.size >= most) break;
    }
    return [...found];
  };

  const copy = (node, into, count) => {
    if (count.left-- <= 0) return null;
    const made = into.importNode(node, false);
    const parts = roots.has(node) ? [...roots.get(node).childNodes, ...node.childNodes] : node.childNodes;
    for (const part of parts) { const child = copy(part, into, count); if (child) made.appendChild(child); }
    return made;
  };
  // The document as text, and the links that the last document handed over does not have. Trees in shadow stand before
  // the content of their hosts.
  const written = (most) => {
    [...trees()];
    let root = document.documentElement;
    if (!root) return { html: "", links: [] };
    if (roots.size) {
      try { root = copy(root, document.implementation.createHTMLDocument(""), { left: NODES_MAX }) || root; } catch { /* too deep */ }
    }
    collect();
    if (most) shown = new Set([...all("a[href],area[href]")].map((element) => element.href));
    const links = [...new Set([...urls, ...seen])].filter((url) => !shown.has(url) && /^https?:/.test(url));
    const type = document.doctype ? "<!DOCTYPE html>\n" : "";
    return { html: (type + root.outerHTML).slice(0, most), links };
  };
  Object.defineProperty(window, "__bigcrawl", { value: Object.freeze({ note, collect, quiet, scroll, press, giveUp, views, written }) });
})();
