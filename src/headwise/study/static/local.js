// Progress and grading where no server is: in this browser. Each entry of the log has a key of its own in
// localStorage, written once and never changed, so that two tabs can't overwrite each other and a tab that is
// closed in the middle leaves nothing half written.

import * as days from "./days.js";
import { grade } from "./grade.js";
import { Problem, page } from "./study.js";
import { COLUMNS, FORMAT, SETTINGS, VERSION, checkGiven, checkSettings, readExport } from "./transfer.js";
import { words } from "./waits.js";

// The scheduler weighs more than all else here, and a lesson asks for no review: it comes with the first queue.
let fold, queueOf;
async function scheduled() {
  try {
    [{ fold }, { queueOf }] = await Promise.all([import("./schedule.js"), import("./queue.js")]);
  } catch {
    throw new Problem("unreachable", "The scheduler (schedule.js) can’t be read; nothing was saved. Try again.");
  }
}

const PREFIX = "headwise-study/";
const NOTICEABLE = 60_000;
const GONE = "This browser keeps nothing for this page (private window, or storage is turned off): what you do here is lost when you close the page.";
const FULL = "This browser’s storage is full, so nothing was saved. Export your progress, free some storage, then try again.";

const ERASED = ["reviews", "answers", "marks"]; // what a learner is told of; undos go with their reviews

const memory = new Map(); // where there is no storage

function storage() {
  try {
    localStorage.setItem(`${PREFIX}probe`, "");
    localStorage.removeItem(`${PREFIX}probe`);
    return localStorage;
  } catch (error) {
    if (error?.name === "QuotaExceededError" && localStorage.length) return localStorage; // full, and there
    return null;
  }
}

function keys() {
  const store = storage();
  return store ? Array.from({ length: store.length }, (_, place) => store.key(place)) : [...memory.keys()];
}

const get = (key) => (storage() ? localStorage.getItem(key) : memory.get(key) ?? null);

function put(key, value) {
  if (!storage()) { memory.set(key, value); return; }
  try {
    localStorage.setItem(key, value);
  } catch {
    throw new Problem("not-saved", FULL);
  }
}

function drop(key) {
  if (storage()) localStorage.removeItem(key);
  else memory.delete(key);
}

// One tab at a time, where the browser can hold a lock (it can't on pages without https).
const alone = (act) => (navigator.locks ? navigator.locks.request("headwise-study", act) : act());

// All entries of a kind, by time and then by id. What can't be read is left where it is and not counted.
function entries(kind) {
  const found = [];
  for (const key of keys()) {
    if (!key.startsWith(`${PREFIX}${kind}/`)) continue;
    try {
      const entry = JSON.parse(get(key));
      const at = days.read(entry.at);
      if (at !== null) found.push({ ...entry, at });
    } catch {
      // another program wrote there
    }
  }
  return found.sort((left, right) => left.at - right.at || (left.id < right.id ? -1 : 1));
}

const known = (kind, id) => JSON.parse(get(`${PREFIX}${kind}/${id}`));
const add = (kind, entry) => put(`${PREFIX}${kind}/${entry.id}`, JSON.stringify(entry));

function settings() {
  try {
    return { ...SETTINGS, ...checkSettings(JSON.parse(get(`${PREFIX}settings`)) ?? {}) };
  } catch {
    return { ...SETTINGS };
  }
}

// The reviews of this guide that count, and what they amount to.
function log() {
  const undone = new Set(entries("undos").map((undo) => undo.undoes));
  const reviews = entries("reviews").filter((review) => review.guide === page.guide && !undone.has(review.id));
  const byCard = Map.groupBy ? Map.groupBy(reviews, (review) => review.card) : grouped(reviews);
  return { reviews, undone, states: new Map([...byCard].map(([card, list]) => [card, fold(list)])) };
}

function grouped(reviews) {
  const found = new Map();
  for (const review of reviews) found.set(review.card, [...(found.get(review.card) ?? []), review]);
  return found;
}

export function setBack(at, clock) {
  if (at === undefined || at - clock <= NOTICEABLE) return "";
  const say = (instant) => new Date(instant).toLocaleString(page.language, { dateStyle: "medium", timeStyle: "short" });
  return `The clock of this computer says ${say(clock)}, but there is a review of ${say(at)} already: was the clock set back? No review is lost; cards with a later review count on from there. If the earlier time was wrong, undo those reviews.`;
}

let answerKeys = null;

async function keyOf(question) {
  if (!answerKeys) {
    const response = await fetch(new URL("answers.json", page.root)).catch(() => null);
    if (!response?.ok) throw new Problem("unreachable", "The file of answers (answers.json) can’t be read; nothing was graded. Try again.");
    answerKeys = await response.json();
  }
  if (!answerKeys[question]) throw new Problem("not-there", "The file of answers lacks this question: reload the page.");
  return answerKeys[question];
}

export const local = {
  where: "in this browser, for this web site alone",
  keeps: () => storage() !== null,
  gone: GONE,

  async progress() {
    const answers = {};
    for (const { id, guide, question, rev, given, correct, score, seed, at } of entries("answers")) {
      if (guide !== page.guide) continue;
      const before = answers[question]?.[rev];
      (answers[question] ??= {})[rev] = { id, given, correct, score, seed, at, attempts: (before?.attempts ?? 0) + 1 };
    }
    const marks = Object.fromEntries(entries("marks").filter((mark) => mark.guide === page.guide).map((mark) => [mark.activity, mark.done]));
    return { profile: "default", file: "", settings: settings(), answers, marks };
  },

  async queue(deck, cards) {
    await scheduled();
    const clock = Date.now();
    const found = log();
    return queueOf(cards, found, settings(), clock, setBack(found.reviews.at(-1)?.at, clock));
  },

  async answer({ id, question, rev, given, seed }) {
    const key = await keyOf(question);
    if (key.rev !== rev) throw new Problem("conflict", `This page shows revision ${rev} of the question, the file of answers has ${key.rev}: reload the page. Nothing was counted.`);
    const result = grade(key, checkGiven(given));
    return alone(() => {
      const before = known("answers", id);
      if (!before) {
        add("answers", {
          id, guide: page.guide, question, rev, version: page.version, given, correct: result.correct,
          score: result.score, seed, at: days.written(Date.now()),
        });
      }
      return { result, repeated: Boolean(before) };
    });
  },

  async review({ id, card, rev, rating, expects, duration, deck, cards }) {
    await scheduled();
    return alone(async () => {
      const clock = Date.now();
      const before = known("reviews", id);
      const state = log().states.get(card) ?? null;
      if (!before) {
        if ((state?.head ?? null) !== expects) {
          throw new Problem("conflict", state
            ? "This card was already reviewed in another tab or window. That review counts; this one was not added."
            : "The last review of this card was undone elsewhere. Nothing was added; here is the card again.");
        }
        const at = state ? Math.max(clock, state.last + 1) : clock;
        add("reviews", { id, guide: page.guide, card, rev, rating, at: days.written(at), clock: days.written(clock), duration: duration ?? null, place: entries("reviews").length + 1 });
      }
      const after = log().states.get(card);
      const wait = after?.head === id ? words(after.due - days.read(known("reviews", id).clock)) : "";
      return { card, state: after, wait, repeated: Boolean(before), told: "", queue: await local.queue(deck, cards) };
    });
  },

  async undo({ id, undoes, deck, cards }) {
    await scheduled();
    return alone(async () => {
      const review = known("reviews", undoes);
      if (!review) throw new Problem("refused", "There is no such review to undo.");
      const { undone, states } = log();
      if (!known("undos", id)) {
        if (undone.has(undoes)) throw new Problem("conflict", "This review was undone already; nothing was changed.");
        if (states.get(review.card)?.head !== undoes) throw new Problem("conflict", "This card was reviewed again since: undo that review first. Nothing was changed.");
        add("undos", { id, undoes, at: days.written(Date.now()) });
      }
      return { card: review.card, state: log().states.get(review.card) ?? null, repeated: false, told: "", queue: await local.queue(deck, cards) };
    });
  },

  async mark({ id, activity, done }) {
    await alone(() => known("marks", id) ?? add("marks", { id, guide: page.guide, activity, done, at: days.written(Date.now()) }));
    return { marks: (await local.progress()).marks };
  },

  async settings(values) {
    put(`${PREFIX}settings`, JSON.stringify({ ...settings(), ...checkSettings(values) }));
    return { settings: settings() };
  },

  async exported() {
    const made = { format: FORMAT, version: VERSION, exported: days.written(Date.now()), profile: "default", settings: settings() };
    for (const [kind, columns] of Object.entries(COLUMNS)) {
      made[kind] = entries(kind).map((entry) => Object.fromEntries(columns.map((name) => [name, name === "at" ? days.written(entry.at) : entry[name]])));
    }
    return `${JSON.stringify(made, null, 1)}\n`;
  },

  async kept() {
    return Object.fromEntries(ERASED.map((kind) => [kind, entries(kind).length]));
  },

  // Everything but the settings; what can't be read goes too.
  async erased() {
    return alone(async () => {
      const found = await local.kept();
      const gone = Object.keys(COLUMNS).map((kind) => `${PREFIX}${kind}/`);
      keys().filter((key) => gone.some((start) => key.startsWith(start))).forEach(drop);
      return found;
    });
  },

  async imported(text) {
    const { tables, settings: chosen } = readExport(text);
    return alone(() => {
      const added = { known: 0 };
      const fresh = [];
      const reviews = new Set([...tables.reviews, ...entries("reviews")].map((review) => review.id));
      const undone = new Set(entries("undos").map((undo) => undo.undoes));
      for (const [kind, columns] of Object.entries(COLUMNS)) {
        added[kind] = 0;
        for (const entry of tables[kind]) {
          const before = known(kind, entry.id);
          if (before && columns.some((name) => JSON.stringify(before[name]) !== JSON.stringify(entry[name]))) {
            throw new Problem("bad-import", `The file’s ${kind}: the id ${entry.id} belongs to another entry here. Nothing was changed.`);
          }
          if (kind === "undos" && !reviews.has(entry.undoes)) {
            throw new Problem("bad-import", `The file’s undos: one undoes the review ${entry.undoes}, which isn’t there. Nothing was changed.`);
          }
          if (before || (kind === "undos" && undone.has(entry.undoes))) { added.known += 1; continue; }
          if (kind === "undos") undone.add(entry.undoes);
          fresh.push([kind, entry]);
          added[kind] += 1;
        }
      }
      const done = [];
      try {
        for (const [kind, entry] of fresh) { add(kind, entry); done.push(`${PREFIX}${kind}/${entry.id}`); }
        put(`${PREFIX}settings`, JSON.stringify(chosen));
      } catch (error) {
        done.forEach(drop); // all or nothing
        throw error;
      }
      return { added };
    });
  },
};
