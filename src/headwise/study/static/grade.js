// Grading by a question's key, where no server does: the same as headwise/study/grading.py.

import { Problem } from "./study.js";
import * as typed from "./answers-text.js";

const SLACK = 1e-9;
const LONGEST = 200;
const notAnAnswer = (message) => new Problem("not-an-answer", message);

export function grade(key, given) {
  if (key.kind === "single" || key.kind === "multiple") return choice(key, given);
  if (key.kind === "order") return order(key, given);
  if (typeof given !== "string") throw notAnAnswer("Write the answer as text.");
  if (key.kind === "numeric") return numeric(key, given);
  if (key.kind === "shape") return compared(key, typed.shape(given), [key.shape], "shape");
  if ([...given].length > LONGEST) throw notAnAnswer(`That is longer than ${LONGEST} characters: a few words are enough.`);
  const words = typed.words(given);
  if (!words) throw notAnAnswer("Write an answer first.");
  return compared(key, words, key.accept, "text");
}

function choice(key, given) {
  const chosen = typeof given === "string" ? [given] : [...given];
  const known = new Set(key.options.map((option) => option.key));
  if (!chosen.length || (chosen.length === 1 && chosen[0] === "")) throw notAnAnswer("Choose an answer first.");
  if (chosen.some((one) => !known.has(one)) || new Set(chosen).size !== chosen.length) {
    throw notAnAnswer("This page shows other options than the guide has now: reload it.");
  }
  if (key.kind === "single" && chosen.length !== 1) throw notAnAnswer(`Choose one answer; ${chosen.length} are chosen.`);
  const options = key.options.map((option) => ({
    key: option.key, chosen: chosen.includes(option.key), correct: option.correct, why: option.why,
  }));
  const judged = options.filter((option) => option.chosen === option.correct).length;
  const correct = judged === options.length;
  if (key.kind === "single") return result(key, correct, correct ? 1 : 0, "Not right.", { options });
  const wrong = `Not right yet. You judged ${judged} of ${options.length} options correctly.`;
  return result(key, correct, judged / options.length, wrong, { options });
}

function order(key, given) {
  const right = key.items.map((item) => item.key);
  if (typeof given === "string" || [...given].sort().join() !== [...right].sort().join()) {
    throw notAnAnswer("This page shows other items than the guide has now: reload it.");
  }
  const items = key.items.map((item, place) => ({
    key: item.key, place: given.indexOf(item.key) + 1, right_place: place + 1, why: item.why,
  }));
  const placed = items.filter((item) => item.place === item.right_place).length;
  const stand = placed === 1 ? "stands in its place" : "stand in their places";
  const wrong = `Not right yet: ${placed} of ${items.length} ${stand}.`;
  return result(key, placed === items.length, placed / items.length, wrong, { items });
}

const near = (value, wanted, tolerance) => Math.abs(value - wanted) <= tolerance + SLACK * Math.abs(wanted);

function numeric(key, given) {
  const value = typed.number(given, key.unit);
  if (near(value, key.answer, key.tolerance)) return result(key, true, 1);
  const mistake = key.mistakes.find((one) => "value" in one && near(value, one.value, key.tolerance));
  return result(key, false, 0, "Not right.", { why: mistake?.why ?? "" });
}

function compared(key, found, accepted, name) {
  const same = (one) => one !== undefined && JSON.stringify(one) === JSON.stringify(found);
  if (accepted.some(same)) return result(key, true, 1);
  return result(key, false, 0, "Not right.", { why: key.mistakes.find((one) => same(one[name]))?.why ?? "" });
}

function result(key, correct, score, wrong = "Not right.", { why = "", options = [], items = [] } = {}) {
  return {
    question: key.id, rev: key.rev, correct, score, verdict: correct ? "Right." : wrong, why, options, items,
    right: key.right, explain: key.explain, again: key.again,
  };
}
