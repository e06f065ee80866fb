// How long a card waits, in words: the same as headwise/study/progress/waits.py; tests/study/progress/schedules.json
// holds both to the same waits.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 304 * DAY / 10;
const YEAR = 36_525 * DAY / 100;

const nearest = (wait, unit) => Math.floor((2 * wait + unit) / (2 * unit));

export function words(wait) {
  if (wait <= 90 * MINUTE) return `${Math.max(1, Math.ceil(wait / MINUTE))} min`;
  if (wait < 36 * HOUR) return `${nearest(wait, HOUR)} h`;
  if (wait < 60 * DAY) return `${nearest(wait, DAY)} days`;
  if (wait < 700 * DAY) return `${nearest(wait, MONTH)} months`;
  const tenths = nearest(10 * wait, YEAR);
  return `${Math.floor(tenths / 10)}.${tenths % 10} years`;
}
