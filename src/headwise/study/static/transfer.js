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
const OUTDOING = ["reviews", "answers", "marks"]; // of which the latest outdoes the others
const NOTICEABLE = 60_000;
export const SETTINGS = { day_start: days.DAY_START, new_per_day: 10, shortcuts: true };

const id = (value) => typeof value === "string" && /^[0-9A-Za-z_-]{8,64}$/.test(value);
const slug = (value) => typeof value === "string" && /^[0-9A-Za-z](?:[0-9A-Za-z._-]{0,126}[0-9A-Za-z])?$/.test(value);
const whole = (low, high) => (value) => Number.isInteger(value) && low <= value && value <= high;
const flag = (value) => typeof value === "boolean";
// A text of whole characters: half of one (a lone surrogate) can be kept in no file. They are counted, not their halves.
const text = (most) => (value) => typeof value === "string" && [...value].length <= most && !/\p{Surrogate}/u.test(value);
const instant = (value) => days.read(value) !== null;
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

// Values that may be kept, by their names; the server refuses the same.
export function check(values) {
  const wrong = Object.keys(values).find((name) => !CHECKS[name](values[name]));
  if (wrong) throw new Problem("refused", `${wrong}: ${JSON.stringify(values[wrong])?.slice(0, 60)} can’t be kept.`);
}

// Is an entry of the log whole? It may have more than an export has.
export const fits = (kind, entry) => Boolean(entry) && typeof entry === "object" && COLUMNS[kind].every((name) => CHECKS[name](entry[name]));

// An entry of the log as a file has it.
export const asExported = (kind, entry) => Object.fromEntries(COLUMNS[kind].map((name) => [name, name === "at" ? days.written(entry.said) : entry[name]]));

// An answer that may be kept; the server says the same in progress/checks.py.
export function checkGiven(given) {
  const length = typeof given === "string" ? [...given].length : 0;
  if (length > 1000) throw new Problem("refused", `The answer has ${length.toLocaleString("en")} characters, and at most 1,000 can be kept: shorten it.`);
  if (!CHECKS.given(given)) throw new Problem("refused", "The answer can’t be kept: half of a character stands in it. Write it again.");
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

// What an export adds to the log: how many entries of each kind, and the entries themselves, as [kind, entry]. Those of
// later than `clock` count from `clock` (`arrived`), so that none plans a card into a time that nobody will see; where
// they came with an earlier import, they count from now, or from when they were written once that has come. The same
// as import_progress in headwise/study/progress/transfer.py.
export function joined(tables, clock, { entries, known }) {
  const added = { known: 0, ahead: 0 };
  const fresh = [];
  const reviews = new Set([...tables.reviews, ...entries("reviews")].map((review) => review.id));
  const undone = new Set(entries("undos").map((undo) => undo.undoes));
  const never = new Set([...undone, ...tables.undos.map((undo) => undo.undoes)]);
  for (const [kind, columns] of Object.entries(COLUMNS)) {
    added[kind] = 0;
    for (const entry of tables[kind]) {
      const before = known(kind, entry.id);
      const as = before && asExported(kind, before);
      if (before && columns.some((name) => JSON.stringify(as[name]) !== JSON.stringify(entry[name]))) throw bad(`The file’s ${kind}: the id ${entry.id} belongs to another entry here.`);
      if (kind === "undos" && !reviews.has(entry.undoes)) throw bad(`The file’s undos: one undoes the review ${entry.undoes}, which isn’t there.`);
      const twice = kind === "undos" && undone.has(entry.undoes); // undone on both machines: once is enough
      if (kind === "undos") undone.add(entry.undoes);
      const outdoes = OUTDOING.includes(kind) && !(kind === "reviews" && never.has(entry.id));
      const said = days.read(entry.at);
      const late = outdoes && said > clock && (!before || before.at < said);
      added.ahead += late && said > clock + NOTICEABLE ? 1 : 0;
      if (before || twice) added.known += 1;
      else added[kind] += 1;
      const moves = before && outdoes && before.at < Math.min(said, clock);
      if (moves || !(before || twice)) fresh.push([kind, { ...(before?.place && { place: before.place }), ...entry, ...(late && { arrived: days.written(clock) }) }]);
    }
  }
  return { added, fresh };
}
