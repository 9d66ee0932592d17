// Elements made from data. Text is only ever set as text, so nothing that a server sends can become markup.

export const byId = (id) => document.getElementById(id);

/** An element with properties, `class` and `data-` attributes among them, and children: elements or text. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else if (value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== ""));
  return element;
}

/** Set text only if it has changed, so that a screen reader reads news only. */
export function say(element, text, kind = "") {
  if (element.textContent !== text) element.textContent = text;
  if (element.className !== kind) element.className = kind;
}

/** Make the children of an element equal to these, and keep those that are: focus, selection and open details stay. */
export function morph(place, ...fresh) {
  const nodes = fresh.flat().filter((node) => node != null && node !== "")
    .map((node) => (typeof node === "string" ? document.createTextNode(node) : node));
  const there = [...place.childNodes];
  nodes.forEach((node, at) => {
    if (!there[at]) place.append(node);
    else if (!merge(there[at], node)) there[at].replaceWith(node);
  });
  there.slice(nodes.length).forEach((node) => node.remove());
}

function merge(there, node) {
  if (there.nodeName !== node.nodeName) return false;
  if (node.nodeType === Node.TEXT_NODE) {
    if (there.data !== node.data) there.data = node.data;
    return true;
  }
  for (const {name} of [...there.attributes]) {
    if (name !== "style" && name !== "open" && !node.hasAttribute(name)) there.removeAttribute(name);
  }
  for (const {name, value} of node.attributes) {
    if (name !== "style" && there.getAttribute(name) !== value) there.setAttribute(name, value);
  }
  if (there.style.cssText !== node.style.cssText) there.style.cssText = node.style.cssText;
  morph(there, ...node.childNodes);
  return true;
}

/** A link to the page of a host, pay-level domain or URL. */
export const siteLink = (kind, name, text = name) => make("a", {href: `#/${kind}/${encodeURIComponent(name)}`}, text);

/** What stands where nothing is to be shown yet: it says what would be there. */
export const empty = (text) => make("p", {className: "empty"}, text);

/**
 * A table with a caption, or what stands in its place without rows. `columns` are {title, of(row), number, head}: `of`
 * gives text or an element. Where it is narrow each row becomes a card; a `wide` table does sooner.
 */
export function table(caption, columns, rows, without = "nothing yet", {wide = false} = {}) {
  if (!rows.length) return empty(without);
  const number = (column) => (column.number ? "number" : "");
  const head = make("tr", {role: "row"}, columns.map((column) =>
    make("th", {scope: "col", role: "columnheader", className: number(column)}, column.title)));
  const body = rows.map((row) => make("tr", {role: "row"}, columns.map((column) => {
    const cell = make(column.head ? "th" : "td", {className: number(column), "data-label": column.title,
      role: column.head ? "rowheader" : "cell"}, column.of(row));
    if (column.head) cell.scope = "row";
    return cell;
  })));
  const width = wide ? "wide" : columns.length < 4 ? "narrow" : "";
  return make("table", {className: `cards ${width}`, role: "table"}, make("caption", {}, caption),
    make("thead", {role: "rowgroup"}, head), make("tbody", {role: "rowgroup"}, body));
}

/** Nested data as a table of names and values, some rows at most. */
export function listing(caption, data, show) {
  const rows = [];
  const add = (name, value) => {
    if (rows.length >= 200) return;
    if (Array.isArray(value) && value.every((each) => each === null || typeof each !== "object")) {
      if (value.length) rows.push([name, value.map((each) => show(name, each)).join("\n")]);
    } else if (Array.isArray(value)) {
      value.forEach((each, at) => add(`${name} ${at + 1}`, each));
    } else if (value !== null && typeof value === "object") {
      Object.entries(value).forEach(([inner, each]) => add(name ? `${name}: ${inner}` : inner, each));
    } else if (value !== null && value !== "") {
      rows.push([name, show(name, value)]);
    }
  };
  add("", data);
  return table(caption, [
    {title: "name", head: true, of: ([name]) => name.replaceAll("_", " ")},
    {title: "value", of: ([, value]) => make("span", {className: "lines"}, value)},
  ], rows);
}
