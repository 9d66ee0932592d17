// Elements made from data. Text is only ever set as text, so nothing that a server sends can become markup.

export const byId = (id) => document.getElementById(id);

/** An element with properties, `class` and `data-` attributes among them, and children: elements or text. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** Set text only if it has changed, so that a screen reader hears news only. */
export function say(element, text, kind = "") {
  if (element.textContent !== text) element.textContent = text;
  element.className = kind;
}

/**
 * A table with a caption. `columns` are {title, of(row), number, head}: `of` gives text or an element.
 * On a narrow screen each row becomes a block of lines.
 */
export function table(caption, columns, rows, empty = "none") {
  if (!rows.length) return make("p", {className: "hint"}, empty);
  const head = make("tr", {}, ...columns.map((column) =>
    make("th", {scope: "col", className: column.number ? "number" : ""}, column.title)));
  const body = rows.map((row) => make("tr", {}, ...columns.map((column) => {
    const shown = column.of(row);
    const cell = make(column.head ? "th" : "td", {className: column.number ? "number" : "", "data-label": column.title});
    if (column.head) cell.scope = "row";
    if (shown !== "" && shown != null) cell.append(shown);
    return cell;
  })));
  return make("table", {className: "stack"},
    make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body));
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
    } else if (value !== null) {
      rows.push([name, show(name, value)]);
    }
  };
  add("", data);
  return table(caption, [
    {title: "name", head: true, of: ([name]) => name.replaceAll("_", " ")},
    {title: "value", of: ([, value]) => make("span", {className: "lines"}, value)},
  ], rows);
}
