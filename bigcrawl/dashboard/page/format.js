// Numbers, times and sizes as the reader's browser writes them.

const integer = new Intl.NumberFormat(undefined, {maximumFractionDigits: 0});
const short = new Intl.NumberFormat(undefined, {notation: "compact", maximumSignificantDigits: 3});
const decimal = new Intl.NumberFormat(undefined, {maximumFractionDigits: 1});
const moment = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "medium"});

export const count = (value) => (value == null ? "–" : integer.format(value));
export const compact = (value) => (value == null ? "–" : short.format(value));
export const rate = (value) => (value == null ? "–" : value >= 100 ? integer.format(value) : decimal.format(value));

/** Bytes with a decimal unit: 1,500,000 is 1.5 MB. */
export function bytes(value) {
  if (value == null) return "–";
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < 5) {
    value /= 1000;
    unit += 1;
  }
  return `${decimal.format(value)} ${["B", "kB", "MB", "GB", "TB", "PB"][unit]}`;
}

/** A time span in its largest unit of which there are two. */
export function span(seconds) {
  if (seconds == null) return "–";
  for (const [unit, length] of [["days", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${integer.format(seconds / length)} ${unit}`;
  }
  return `${decimal.format(seconds)} s`;
}

/** A time that bigcrawl has written, such as 2026-01-31T12:00:00Z, in local time; other text is left as it is. */
export function local(text) {
  if (typeof text !== "string" || !/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(text)) return text;
  const time = new Date(text.replace(" UTC", "Z").replace(/(\d) (\d)/, "$1T$2"));
  return Number.isNaN(time.getTime()) ? text : moment.format(time);
}
