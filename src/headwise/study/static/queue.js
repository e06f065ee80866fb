// What is to be reviewed today: the same as headwise/study/progress/queue.py.

import * as days from "./days.js";
import { previews } from "./schedule.js";
import { words } from "./waits.js";

const AHEAD = 20 * 60_000;

// `deck`: [{ id, rev }] in teaching order; `states`: Map from card to its state.
export function sortOut(deck, states, { clock, ends, room }) {
  const changed = [], learning = [], review = [], fresh = [], waiting = [], reviews = [];
  let heldBack = 0;
  for (const card of deck) {
    const state = states.get(card.id) ?? null;
    if (!state) {
      if (room > 0) { room -= 1; fresh.push(due(card, null, "new", clock)); } else heldBack += 1;
    } else if (state.rev < card.rev) {
      changed.push(due(card, state, "changed", clock));
    } else if (state.state === "review") {
      if (state.due < ends) review.push(due(card, state, "review", clock));
      else reviews.push(state.due);
    } else if (state.due <= clock) {
      learning.push(due(card, state, "learning", clock));
    } else {
      waiting.push([card, state]);
    }
  }
  const byDue = (left, right) => left.due - right.due;
  waiting.sort((left, right) => left[1].due - right[1].due);
  return {
    cards: [...changed, ...learning.sort(byDue), ...review.sort(byDue), ...fresh],
    ahead: waiting.filter(([, state]) => state.due <= clock + AHEAD).map(([card, state]) => due(card, state, "learning", clock)),
    waiting: waiting.map(([, state]) => state.due),
    reviews,
    held_back: heldBack,
  };
}

function due(card, state, kind, clock) {
  const next = previews(state, clock);
  const waits = Object.fromEntries(Object.entries(next).map(([rating, at]) => [rating, words(at - clock)]));
  return { card: card.id, kind, rev: card.rev, head: state?.head ?? null, due: state?.due ?? null, next, waits };
}

// The rating that was given last of those that can be undone; the same as last_given in queue.py. `heads`: the last
// review of each card, as [id, what the clock said], in the order in which they were written down.
export function lastGiven(heads, clock) {
  let latest = 0, last = null, then = -1;
  for (const [id, said] of heads) {
    const when = said <= clock ? said : latest;
    latest = Math.max(latest, when);
    if (when >= then) [last, then] = [id, when];
  }
  return last;
}

// `place` counts the reviews that were given in this browser; an import has none.
function heads({ reviews, states }) {
  const last = new Set([...states.values()].map((state) => state.head));
  return reviews.filter((review) => last.has(review.id))
    .map((review) => [review.id, days.read(review.clock) ?? review.at, review.place ?? 0])
    .sort((left, right) => left[2] - right[2]);
}

// The whole answer, as the server gives it. `log`: { reviews (that count), states (of the guide), latest }.
export function queueOf(deck, log, settings, clock, told) {
  const start = days.startOfDay(clock, settings.day_start);
  const ends = days.endOfDay(clock, settings.day_start);
  const introduced = [...log.states.values()].filter((state) => start <= state.first && state.first < ends).length;
  const found = sortOut(deck, log.states, { clock, ends, room: settings.new_per_day - introduced });
  const coming = [...found.waiting];
  if (found.reviews.length) coming.push(days.startOfDay(Math.min(...found.reviews), settings.day_start));
  if (found.held_back && settings.new_per_day) coming.push(ends);
  return {
    cards: found.cards,
    ahead: found.ahead,
    later: found.waiting.filter((at) => clock + AHEAD < at && at < ends).length + found.held_back,
    next_due: coming.length ? Math.min(...coming) : null,
    now: clock,
    day: days.dayOf(clock, settings.day_start),
    ends,
    counts: Object.fromEntries(["changed", "learning", "review", "new"].map((kind) => [kind, found.cards.filter((one) => one.kind === kind).length])),
    done: log.reviews.filter((review) => review.at >= start).length,
    seen: deck.filter((card) => log.states.has(card.id)).length,
    undo: lastGiven(heads(log), clock),
    told,
  };
}
