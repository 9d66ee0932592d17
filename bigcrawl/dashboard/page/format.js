// Numbers, times and sizes as the reader's browser writes them. Times are in the reader's zone, which is named.
/* global TimePlot */

const integer = new Intl.NumberFormat(undefined, {maximumFractionDigits: 0});
const short = new Intl.NumberFormat(undefined, {notation: "compact", maximumSignificantDigits: 3});
const decimal = new Intl.NumberFormat(undefined, {maximumFractionDigits: 1});
const fixed = new Intl.NumberFormat(undefined, {minimumFractionDigits: 1, maximumFractionDigits: 1});
const percent = new Intl.NumberFormat(undefined, {style: "percent", maximumSignificantDigits: 2});
const clock = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit", second: "2-digit"});
const day = new Intl.DateTimeFormat(undefined, {day: "numeric", month: "short"});
const dated = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "short"});

export const count = (value) => (value == null ? "–" : integer.format(value));
export const compact = (value) => (value == null ? "–" : value < 10000 ? decimal.format(value) : short.format(value));
export const rate = (value) => (value == null ? "–" : value >= 100 ? integer.format(value) : decimal.format(value));
/** A rate with one decimal always, so that it does not jump. */
export const steady = (value) => (value == null ? "–" : value >= 1000 ? integer.format(value) : fixed.format(value));
export const share = (part, whole) => (whole ? percent.format(part / whole) : "–");
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

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

/** Unix seconds with date and zone. */
export const at = (seconds) => (seconds == null ? "–" : `${dated.format(seconds * 1000)} ${TimePlot.zone()}`);

/** Unix seconds as time of day, and the day if it is not today. */
export function when(seconds) {
  if (seconds == null) return "–";
  const time = new Date(seconds * 1000);
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? clock.format(time) : `${day.format(time)}, ${clock.format(time)}`;
}

/** A time that bigcrawl has written, such as 2026-01-31T12:00:00Z, in local time; other text is left as it is. */
export function local(text) {
  if (typeof text !== "string" || !/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(text)) return text;
  const time = new Date(text.replace(" UTC", "Z").replace(/(\d) (\d)/, "$1T$2"));
  return Number.isNaN(time.getTime()) ? text : when(time / 1000);
}

export const zone = () => TimePlot.zone();
