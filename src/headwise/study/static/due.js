// What is to be reviewed, in words: the same on a deck's page, in the list of all activities and on the front page.

import { day, many, time } from "./study.js";
import { words } from "./waits.js";

const DAY = 86_400_000;
const OLD = ["changed", "learning", "review"];

// Several queues together: how many cards are due now, how many are new, how many may be learnt ahead, how many
// were ever seen, and when the next one comes.
export function together(queues) {
  const sum = (count) => queues.reduce((total, queue) => total + count(queue), 0);
  const times = queues.map((queue) => queue.next_due).filter((at) => at !== null);
  return {
    due: sum((queue) => queue.cards.filter((card) => OLD.includes(card.kind)).length),
    fresh: sum((queue) => queue.cards.filter((card) => card.kind === "new").length),
    ahead: sum((queue) => queue.ahead.length),
    seen: sum((queue) => queue.seen),
    later: sum((queue) => queue.later),
    next: times.length ? Math.min(...times) : null,
    now: queues.length ? queues[0].now : 0,
  };
}

// "3 cards due, 10 new cards"; "" where there are none.
export function dueWords({ due, fresh }) {
  return [due && `${many(due, "card")} due`, fresh && many(fresh, "new card")].filter(Boolean).join(", ");
}

// Where nothing is due: "done for now: next card at 12:06 (in 6 min)".
export function restWords({ next, now, later, seen }) {
  if (next === null) return later ? `no card due; ${many(later, "new card")} wait, since the settings bring none a day` : seen ? "done for now" : "none due";
  return `done for now: next card ${next - now < DAY ? "at" : "on"} ${next - now < DAY ? time(next) : day(next)} (in ${words(next - now)})`;
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
