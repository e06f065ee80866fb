// When a card comes back: the memory model of ts-fsrs, folded over the card's reviews, in the steps that py-fsrs
// takes. The same as headwise/study/progress/schedule.py: tests/study/progress/schedules.json holds both to the
// same reviews. (ts-fsrs's own scheduler counts days by the calendar of UTC and rounds steps to minutes; it is
// not used.)

import { LATEST } from "./days.js";
import { fsrs } from "./vendor/ts-fsrs.js";

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const STEPS = { learning: [MINUTE, 10 * MINUTE], relearning: [10 * MINUTE] };
const AGAIN = 1, HARD = 2, GOOD = 3, EASY = 4;
export const RATINGS = [AGAIN, HARD, GOOD, EASY];

const model = fsrs({ request_retention: 0.9, enable_fuzz: false, enable_short_term: true, maximum_interval: 36500 });

// The state after a list of reviews of one card, in their order; null where there are none.
export function fold(reviews) {
  return reviews.reduce((state, review) => after(state, state && review.at <= state.last ? { ...review, at: state.last + 1 } : review), null);
}

// The state that a review makes of a state; null is a new card.
export function after(state, { id, at, rating, rev = 1 }) {
  if (state && at <= state.last) throw new RangeError(`a review at ${at} follows one at ${state.last}`);
  const elapsed = state ? Math.floor((at - state.last) / DAY) : 0;
  const memory = model.next_state(state && { stability: state.stability, difficulty: state.difficulty }, elapsed, rating);
  const was = state?.state ?? "learning";
  const forgotten = was === "review" && rating === AGAIN;
  const next = was === "review" ? reviewed(rating) : stepped(was, state?.step ?? 0, rating);
  const wait = next.wait ?? model.next_interval(memory.stability, elapsed) * DAY;
  return {
    state: next.state, step: next.step, stability: memory.stability, difficulty: memory.difficulty,
    due: Math.min(at + wait, Math.max(at, LATEST)), last: at, first: state?.first ?? at, reviews: (state?.reviews ?? 0) + 1,
    lapses: (state?.lapses ?? 0) + (forgotten ? 1 : 0), rev, head: id,
  };
}

const known = { state: "review", step: null, wait: null };

function reviewed(rating) {
  return rating === AGAIN ? { state: "relearning", step: 0, wait: STEPS.relearning[0] } : known;
}

function stepped(state, step, rating) {
  const steps = STEPS[state];
  if (rating === EASY || (step >= steps.length && rating !== AGAIN)) return known;
  if (rating === AGAIN) return { state, step: 0, wait: steps[0] };
  if (rating === HARD) {
    if (step > 0) return { state, step, wait: steps[step] };
    return { state, step, wait: steps.length === 1 ? steps[0] * 1.5 : (steps[0] + steps[1]) / 2 };
  }
  return step + 1 === steps.length ? known : { state, step: step + 1, wait: steps[step + 1] };
}

// For each rating, the instant at which the card would come back if it were given now.
export function previews(state, at) {
  const when = state ? Math.max(at, state.last + 1) : at;
  return Object.fromEntries(RATINGS.map((rating) => [rating, after(state, { id: "", at: when, rating }).due]));
}
