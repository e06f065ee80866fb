// Progress and grading by the local server. A review, an undo or a mark that could not be delivered is kept in this
// browser and sent again, under the same id, when a page is opened next: the server takes each id once.

import { Problem, page } from "./study.js";

const OUTBOX = "headwise-study-outbox/";
let profile = null;

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: typeof body === "string" ? body : JSON.stringify(body) };
  let response;
  try {
    response = await fetch(`/api${path}`, options);
  } catch {
    throw new Problem("unreachable", "The server doesn’t answer: is `headwise study` still running? Nothing was saved yet.");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer) return answer;
  throw new Problem(answer?.error ?? "failed", answer?.message ?? `The server failed (${response.status}).`);
}

const undelivered = (error) => ["unreachable", "not-saved", "failed", "damaged"].includes(error.name);

function box(id, entry) {
  try {
    if (entry) localStorage.setItem(OUTBOX + id, JSON.stringify(entry));
    else localStorage.removeItem(OUTBOX + id);
  } catch {
    // then it is tried again from this page alone
  }
}

// Send, and remember until the server has answered.
async function deliver(path, body) {
  box(body.id, { path, body, profile, when: Date.now() });
  try {
    const answer = await ask(path, body);
    box(body.id, null);
    return answer;
  } catch (error) {
    if (!undelivered(error)) box(body.id, null);
    throw error;
  }
}

export const remote = {
  where: "",
  keeps: () => true,
  gone: "",

  async progress() {
    const found = await ask(`/progress?guide=${encodeURIComponent(page.guide)}`);
    profile = found.profile;
    return found;
  },

  // What was not delivered the last time, for this profile; how many entries the server has taken now.
  async flush() {
    let sent = 0;
    let waiting = [];
    try {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(OUTBOX));
      waiting = keys.map((key) => [key, JSON.parse(localStorage.getItem(key))]);
    } catch {
      return 0;
    }
    for (const [key, entry] of waiting.sort(([, left], [, right]) => left.when - right.when)) {
      if (entry.profile !== profile) continue;
      try {
        await ask(entry.path, entry.body);
        sent += 1;
        localStorage.removeItem(key);
      } catch (error) {
        if (undelivered(error)) break;
        localStorage.removeItem(key); // it came too late: the card was reviewed elsewhere
      }
    }
    return sent;
  },

  // Forget what was not delivered: the learner gave it up.
  forget: (id) => box(id, null),

  queue: (deck) => ask(`/queue?guide=${encodeURIComponent(page.guide)}&deck=${encodeURIComponent(deck)}`),
  answer: ({ id, question, rev, given, seed }) =>
    ask(`/quiz/${encodeURIComponent(question)}/answer`, { id, guide: page.guide, version: page.version, rev, given, seed }),
  review: ({ id, card, rev, rating, expects, duration }) =>
    deliver("/reviews", { id, guide: page.guide, card, rev, rating, expects, duration }),
  undo: ({ id, undoes, deck }) => deliver("/reviews/undo", { id, guide: page.guide, undoes, deck }),
  mark: ({ id, activity, done }) => deliver("/marks", { id, guide: page.guide, activity, done }),
  settings: (values) => ask("/settings", values),

  async exported() {
    const response = await fetch("/api/export").catch(() => null);
    if (!response?.ok) throw new Problem("unreachable", "The server doesn’t give the export: is `headwise study` still running?");
    return response.text();
  },
  imported: (text) => ask("/import", text),
};
