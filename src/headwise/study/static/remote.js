// Progress and grading by the local server. A review, an undo or a mark that could not be delivered is kept in this
// browser, for this address with its port, and sent again, under the same id and with the instant at which it was made,
// when a page of its guide is opened there next: the server takes each id once.

import { Problem, day, page, time } from "./study.js";

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

// The server took nothing, and may later.
const undelivered = (error) => ["unreachable", "not-saved", "failed", "damaged"].includes(error.name);
// The server has judged the entry: it will never be taken.
const judged = (error) => ["conflict", "refused"].includes(error.name);

function box(id, entry) {
  try {
    if (entry) localStorage.setItem(OUTBOX + id, JSON.stringify(entry));
    else localStorage.removeItem(OUTBOX + id);
  } catch {
    // then it is tried again from this page alone
  }
}

// Send, and remember until the server has answered.
async function deliver(path, entry) {
  const when = waiting().find(({ body }) => body.id === entry.id)?.when ?? Date.now();
  const body = { ...entry, when };
  box(body.id, { path, body, profile, when });
  try {
    const answer = await ask(path, body);
    box(body.id, null);
    return answer;
  } catch (error) {
    if (judged(error)) box(body.id, null);
    throw error;
  }
}

// What waits to be sent, the oldest first. What can't be read is left where it is.
function waiting() {
  const found = [];
  try {
    for (const key of Object.keys(localStorage).filter((name) => name.startsWith(OUTBOX))) {
      try {
        const entry = JSON.parse(localStorage.getItem(key));
        if (entry.path && entry.body.id && Number.isFinite(entry.when)) found.push(entry);
      } catch {
        // another program wrote there
      }
    }
  } catch {
    // nothing is kept here
  }
  return found.sort((left, right) => left.when - right.when);
}

const WORDS = { "/reviews": "A rating", "/reviews/undo": "The undoing of a rating", "/marks": "A mark" };

// Send what was not delivered the last time, for this profile and guide. What the server can't take yet goes on waiting.
async function flush() {
  let sent = 0;
  const lost = [];
  for (const { path, body, profile: whose, when } of waiting()) {
    if (whose !== profile || body.guide !== page.guide) continue;
    try {
      await ask(path, { ...body, when });
      sent += 1;
      box(body.id, null);
    } catch (error) {
      if (undelivered(error)) break;
      if (!judged(error)) continue;
      lost.push(`${WORDS[path] ?? "An entry"} of ${day(when)}, ${time(when)}, reached the server only now and was not taken. ${error.message}`);
      box(body.id, null);
    }
  }
  return { sent, lost };
}

export const remote = {
  where: "",
  keeps: () => true,
  gone: "",

  // What waits is sent before anything is shown, or a page would offer a card that was rated already. Beside the
  // server's answer: how many entries it has taken now (`sent`), and what it will never take, in words (`lost`).
  async progress() {
    const read = () => ask(`/progress?guide=${encodeURIComponent(page.guide)}`);
    const found = await read();
    profile = found.profile;
    const { sent, lost } = await flush();
    return { ...(sent ? await read() : found), sent, lost };
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
  kept: () => ask("/kept"),

  // What waits to be sent goes too, or it would bring erased reviews back.
  async erased() {
    const { erased } = await ask("/erase", { profile });
    for (const entry of waiting()) if (entry.profile === profile) box(entry.body.id, null);
    return erased;
  },
};
