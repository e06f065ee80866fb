// Progress and grading where no server is: in this browser, with the answers that the server would give.
// tests/study/progress/same_answers.py asks both the same.

import * as days from "./days.js";
import { grade } from "./grade.js";
import * as kept from "./kept.js";
import { Problem, page } from "./study.js";
import { COLUMNS, FORMAT, SETTINGS, VERSION, asExported, check, checkGiven, checkSettings, joined, readExport } from "./transfer.js";
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

const NOTICEABLE = 60_000;
const GONE = "This browser keeps nothing for this page (private window, or storage is turned off): what you do here is lost when you close the page.";
const ERASED = ["reviews", "answers", "marks"]; // what a learner is told of; undos go with their reviews

const { alone, entries, known } = kept;

function settings() {
  try {
    return { ...SETTINGS, ...checkSettings(kept.readSettings()) };
  } catch {
    return { ...SETTINGS };
  }
}

// The reviews of this guide that count, and what they amount to; computed again only when the log is another one.
let last = { all: null, undos: null, log: null };

function log() {
  const all = entries("reviews"), undos = entries("undos");
  if (last.all !== all || last.undos !== undos) {
    const undone = new Set(undos.map((undo) => undo.undoes));
    const reviews = all.filter((review) => review.guide === page.guide && !undone.has(review.id));
    const byCard = new Map();
    for (const review of reviews) byCard.set(review.card, [...(byCard.get(review.card) ?? []), review]);
    last = { all, undos, log: { reviews, undone, states: new Map([...byCard].map(([card, list]) => [card, fold(list)])) } };
  }
  return last.log;
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

// The entry that has this id already, if it is the same; null if there is none.
function repeated(kind, id, same) {
  const before = known(kind, id);
  if (before && Object.entries(same).some(([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value))) {
    throw new Problem("refused", `id ${id}: it belongs to another ${kind.slice(0, -1)}; make a new one for each.`);
  }
  return before;
}

export const local = {
  where: "in this browser, for this web site alone",
  keeps: kept.keeps,
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
    check({ id, question, rev, seed });
    const key = await keyOf(question);
    if (key.rev !== rev) throw new Problem("conflict", `This page shows revision ${rev} of the question, the file of answers has ${key.rev}: reload the page. Nothing was counted.`);
    const result = grade(key, checkGiven(given));
    return alone(() => {
      const before = repeated("answers", id, { guide: page.guide, question, rev, given });
      if (!before) {
        kept.add("answers", {
          id, guide: page.guide, question, rev, version: page.version, given, correct: result.correct,
          score: result.score, seed, at: days.written(Date.now()),
        });
      }
      return { result, repeated: Boolean(before) };
    });
  },

  async review({ id, card, rev, rating, expects, duration = null, deck, cards }) {
    await scheduled();
    check({ id, card, rev, rating, duration });
    if (expects !== null) check({ id: expects });
    return alone(async () => {
      const clock = Date.now();
      const before = repeated("reviews", id, { guide: page.guide, card, rev, rating });
      const state = log().states.get(card) ?? null;
      let told = "";
      if (!before) {
        if ((state?.head ?? null) !== expects) {
          throw new Problem("conflict", state
            ? "This card was already reviewed in another tab or window. That review counts; this one was not added."
            : "The last review of this card was undone elsewhere. Nothing was added; here is the card again.");
        }
        const at = state ? Math.max(clock, state.last + 1) : clock;
        kept.add("reviews", { id, guide: page.guide, card, rev, rating, at: days.written(at), clock: days.written(clock), duration, place: entries("reviews").length + 1 });
        kept.lasting();
        told = setBack(at, clock);
      }
      const after = log().states.get(card) ?? null;
      const wait = after?.head === id ? words(after.due - days.read(known("reviews", id).clock)) : "";
      return { card, state: after, wait, repeated: Boolean(before), told, queue: await local.queue(deck, cards) };
    });
  },

  async undo({ id, undoes, deck, cards }) {
    await scheduled();
    check({ id, undoes });
    return alone(async () => {
      const review = known("reviews", undoes);
      if (!review) throw new Problem("refused", "There is no such review to undo.");
      const before = repeated("undos", id, { undoes });
      const { undone, states } = log();
      if (!before) {
        if (undone.has(undoes)) throw new Problem("conflict", "This review was undone already; nothing was changed.");
        if (states.get(review.card)?.head !== undoes) throw new Problem("conflict", "This card was reviewed again since: undo that review first. Nothing was changed.");
        kept.add("undos", { id, undoes, at: days.written(Date.now()) });
      }
      return { card: review.card, state: log().states.get(review.card) ?? null, wait: "", repeated: Boolean(before), told: "", queue: await local.queue(deck, cards) };
    });
  },

  async mark({ id, activity, done }) {
    check({ id, activity, done });
    await alone(() => repeated("marks", id, { guide: page.guide, activity, done }) ?? kept.add("marks", { id, guide: page.guide, activity, done, at: days.written(Date.now()) }));
    return { marks: (await local.progress()).marks };
  },

  async settings(values) {
    kept.writeSettings({ ...settings(), ...checkSettings(values) });
    return { settings: settings() };
  },

  async exported() {
    const made = { format: FORMAT, version: VERSION, exported: days.written(Date.now()), profile: "default", settings: settings() };
    for (const kind of Object.keys(COLUMNS)) made[kind] = entries(kind).map((entry) => asExported(kind, entry));
    made.undos = made.undos.filter((undo) => known("reviews", undo.undoes)); // of one that can't be read
    return `${JSON.stringify(made, null, 1)}\n`;
  },

  async kept() {
    return Object.fromEntries(ERASED.map((kind) => [kind, entries(kind).length]));
  },

  // Everything but the settings; what can't be read goes too.
  async erased() {
    return alone(async () => {
      const found = await local.kept();
      kept.clear();
      return found;
    });
  },

  async imported(text) {
    const { tables, settings: chosen } = readExport(text);
    return alone(() => {
      const { added, fresh } = joined(tables, Date.now(), { entries, known });
      kept.addAll(fresh, chosen);
      return { added };
    });
  },
};
