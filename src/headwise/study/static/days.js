// The learner's day begins at 4:00 by the clock on the wall unless they choose otherwise; only the queue knows of
// days. The same as headwise/study/progress/days.py, in the browser's time zone. Instants are milliseconds.

export const DAY_START = "04:00";
// 9999-12-28T00:00Z, the last instant that is planned for.
export const LATEST = 253_401_955_200_000;
const END = 253_402_300_799_999; // of the year 9999

export function minutes(start) {
  const found = typeof start === "string" ? /^([01][0-9]|2[0-3]):([0-5][0-9])$/.exec(start) : null;
  return found ? Number(found[1]) * 60 + Number(found[2]) : null;
}

// The day that an instant belongs to, as [year, month from 0, day]. Instants are compared, not what the clock shows:
// a start that the clock shows twice is passed the first time.
function parts(at, start) {
  const local = new Date(at);
  for (let day = local.getDate() + 1; ; day -= 1) {
    const date = new Date(Date.UTC(local.getFullYear(), local.getMonth(), day));
    const found = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
    if (!(begins(...found, start) > at)) return found;
  }
}

const two = (number) => String(number).padStart(2, "0");

export function dayOf(at, start = DAY_START) {
  const [year, month, day] = parts(at, start);
  return `${year}-${two(month + 1)}-${two(day)}`;
}

function begins(year, month, day, start) {
  const begin = minutes(start);
  return new Date(year, month, day, Math.floor(begin / 60), begin % 60).getTime();
}

export function startOfDay(at, start = DAY_START) {
  return begins(...parts(at, start), start);
}

export function endOfDay(at, start = DAY_START) {
  const [year, month, day] = parts(at, start);
  return begins(year, month, day + 1, start);
}

// As files have it; before 1970 and after 9999, the nearest that can be read: a clock may say anything.
export const written = (at) => new Date(Math.max(0, Math.min(at, END))).toISOString();

// The instant that `written` wrote; null if the text is none, or lies before 1970.
export function read(text) {
  if (typeof text !== "string" || !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) || at < 0 || written(at) !== text ? null : at;
}
