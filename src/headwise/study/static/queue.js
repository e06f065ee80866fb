// What is to be reviewed today: the same as headwise/study/progress/queue.py.

import * as days from "./days.js";
import { previews } from "./schedule.js";

const AHEAD = 20 * 60_000;

// `deck`: [{ id, rev }] in teaching order; `states`: Map from card to its state.
export function sortOut(deck, states, { clock, ends, room }) {
  const changed = [], learning = [], review = [], fresh = [], waiting = [], future = [];
  let heldBack = 0;
  for (const card of deck) {
    const state = states.get(card.id) ?? null;
    if (!state) {
      if (room > 0) { room -= 1; fresh.push(due(card, null, "new", clock)); } else heldBack += 1;
    } else if (state.rev < card.rev) {
      changed.push(due(card, state, "changed", clock));
    } else if (state.state === "review") {
      if (state.due < ends) review.push(due(card, state, "review", clock));
      else future.push(state.due);
    } else if (state.due <= clock) {
      learning.push(due(card, state, "learning", clock));
    } else {
      waiting.push([card, state]);
    }
  }
  const byDue = (left, right) => left.due - right.due;
  let cards = [...changed, ...learning.sort(byDue), ...review.sort(byDue), ...fresh];
  waiting.sort((left, right) => left[1].due - right[1].due);
  if (!cards.length) {
    const soon = waiting.filter(([, state]) => state.due <= clock + AHEAD);
    cards = soon.map(([card, state]) => due(card, state, "learning", clock));
    waiting.splice(0, soon.length);
  }
  future.push(...waiting.map(([, state]) => state.due));
  const later = future.filter((at) => at < ends).length + heldBack;
  return { cards, later, next_due: future.length ? Math.min(...future) : null };
}

function due(card, state, kind, clock) {
  return { card: card.id, kind, rev: card.rev, head: state?.head ?? null, due: state?.due ?? null, next: previews(state, clock) };
}

// The whole answer, as the server gives it. `log`: { reviews (that count), states (of the guide), latest }.
export function queueOf(deck, log, settings, clock, told) {
  const start = days.startOfDay(clock, settings.day_start);
  const ends = days.endOfDay(clock, settings.day_start);
  const introduced = [...log.states.values()].filter((state) => start <= state.first && state.first < ends).length;
  const found = sortOut(deck, log.states, { clock, ends, room: settings.new_per_day - introduced });
  const last = log.reviews.at(-1);
  return {
    ...found,
    now: clock,
    day: days.dayOf(clock, settings.day_start),
    ends,
    counts: Object.fromEntries(["changed", "learning", "review", "new"].map((kind) => [kind, found.cards.filter((one) => one.kind === kind).length])),
    done: log.reviews.filter((review) => review.at >= start).length,
    undo: last && log.states.get(last.card)?.head === last.id ? last.id : null,
    told,
  };
}
