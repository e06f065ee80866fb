// Progress as one JSON file: the same format, and the same checks, as headwise/study/progress/transfer.py.

import * as days from "./days.js";
import { Problem } from "./study.js";

export const FORMAT = "headwise-study-progress";
export const VERSION = 1;
export const COLUMNS = {
  reviews: ["id", "guide", "card", "rev", "rating", "at", "clock", "duration"],
  undos: ["id", "undoes", "at"],
  answers: ["id", "guide", "question", "rev", "version", "given", "correct", "score", "seed", "at"],
  marks: ["id", "guide", "activity", "done", "at"],
};
const AHEAD = 86_400_000;
export const SETTINGS = { day_start: days.DAY_START, new_per_day: 10, shortcuts: true };

const id = (value) => typeof value === "string" && /^[0-9A-Za-z_-]{8,64}$/.test(value);
const slug = (value) => typeof value === "string" && /^[0-9A-Za-z](?:[0-9A-Za-z._-]{0,126}[0-9A-Za-z])?$/.test(value);
const whole = (low, high) => (value) => Number.isInteger(value) && low <= value && value <= high;
const flag = (value) => typeof value === "boolean";
// A text of whole characters: half of one (a lone surrogate) can be kept in no file.
const text = (most) => (value) => typeof value === "string" && value.length <= most && !/\p{Surrogate}/u.test(value);
// From 1970 to a day from now: a clock may be ahead of this one, but not by more.
const instant = (value) => days.read(value) !== null && days.read(value) <= Date.now() + AHEAD;
const CHECKS = {
  id, undoes: id, guide: slug, card: slug, question: slug, activity: slug,
  rev: whole(1, 1_000_000), rating: whole(1, 4), seed: whole(0, 2 ** 32 - 1),
  duration: (value) => value === null || whole(0, 86_400_000)(value),
  version: (value) => value === "current" || (typeof value === "string" && /^[1-9]\d{0,8}$/.test(value)),
  given: (value) => text(1000)(value) || (Array.isArray(value) && value.length <= 100 && value.every(text(64))),
  correct: flag, done: flag, at: instant, clock: instant,
  score: (value) => typeof value === "number" && value >= 0 && value <= 1,
};

const bad = (message) => new Problem("bad-import", `${message} Nothing was changed.`);

// An answer that may be kept; the server says the same in progress/checks.py.
export function checkGiven(given) {
  if (!CHECKS.given(given)) throw new Problem("refused", `The answer ${JSON.stringify(given)} can’t be kept: it is longer than 1000 characters, or half of a character stands in it. Write it again.`);
  return given;
}

export function checkSettings(values) {
  for (const [name, value] of Object.entries(values)) {
    const fine = name === "day_start" ? days.minutes(value) !== null
      : name === "new_per_day" ? whole(0, 9999)(value) : name === "shortcuts" && flag(value);
    if (!fine) throw new Problem("refused", `${name}: ${JSON.stringify(value)} can’t be set.`);
  }
  return values;
}

// Check a whole export; its entries by kind, and its settings.
export function readExport(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw bad(`The file is no whole JSON file (${error.message}).`);
  }
  if (!data || typeof data !== "object" || data.format !== FORMAT) throw bad(`The file is no export of progress ("format": "${FORMAT}").`);
  if (data.version !== VERSION) throw bad(`The file has the format’s version ${JSON.stringify(data.version)}, and this page reads ${VERSION}.`);
  const unknown = Object.keys(data).find((name) => !["format", "version", "exported", "profile", "settings", ...Object.keys(COLUMNS)].includes(name));
  if (unknown) throw bad(`The file has a part “${unknown}” that is unknown.`);
  const tables = {};
  for (const [table, columns] of Object.entries(COLUMNS)) {
    const entries = data[table];
    if (!Array.isArray(entries)) throw bad(`The file has no list “${table}”: it is not whole.`);
    entries.forEach((entry, place) => checkEntry(table, columns, entry, place));
    if (new Set(entries.map((entry) => entry.id)).size !== entries.length) throw bad(`Two of the ${table} have the same id.`);
    tables[table] = entries;
  }
  if (!data.settings || typeof data.settings !== "object" || Array.isArray(data.settings)) throw bad("The file has no settings: it is not whole.");
  try {
    checkSettings(data.settings);
  } catch (error) {
    throw bad(`The settings: ${error.message}`);
  }
  return { tables, settings: data.settings };
}

function checkEntry(table, columns, entry, place) {
  const where = `The file’s ${table}, number ${place + 1}:`;
  const names = entry && typeof entry === "object" ? Object.keys(entry) : [];
  if (names.length !== columns.length || columns.some((name) => !names.includes(name))) throw bad(`${where} it has to have ${columns.join(", ")}.`);
  const wrong = columns.find((name) => !CHECKS[name](entry[name]));
  if (wrong) throw bad(`${where} ${wrong} is ${JSON.stringify(entry[wrong])}, which it can’t be.`);
}
