// How far the learner is: words beside each activity, marks on lessons, cards due, settings, export and import.
// What the page needs: see docs/study/hooks.md.

import { backend, progress } from "./backend.js";
import { dueWords, restWords, together } from "./due.js";
import { nextOf, show as showNext } from "./going.js";
import { settingsForm } from "./settings.js";
import { make, makeId, many, page, tell } from "./study.js";

const pairs = (text) => (text ?? "").split(/\s+/).filter(Boolean).map((pair) => {
  const place = pair.lastIndexOf(":");
  return { id: pair.slice(0, place), rev: Number(pair.slice(place + 1)) };
});

const decks = () => [...document.querySelectorAll("[data-progress-of][data-cards]")].map((row) => ({ id: row.dataset.progressOf, cards: pairs(row.dataset.cards) }));

const queues = new Map();

function queue(found, deck, cards) {
  if (!queues.has(deck)) queues.set(deck, found.decks?.[deck] ? Promise.resolve(found.decks[deck]) : backend.queue(deck, cards));
  return queues.get(deck);
}

function quizWords(questions, answers) {
  const given = questions.filter(({ id, rev }) => answers[id]?.[rev]);
  const right = given.filter(({ id, rev }) => answers[id][rev].correct).length;
  const earlier = questions.filter(({ id, rev }) => answers[id] && !answers[id][rev]).length;
  const words = given.length ? [`${given.length} of ${questions.length} answered, ${right} right`] : [];
  if (earlier) words.push(`${earlier} answered in an earlier wording`);
  return words.join("; ");
}

function deckWords(found) {
  const all = together([found]);
  return dueWords(all) || restWords(all);
}

async function rows(found) {
  for (const row of document.querySelectorAll("[data-progress-of]")) {
    const place = row.querySelector("[data-progress]");
    if (!place) continue;
    const id = row.dataset.progressOf;
    const words = [];
    if (found.marks[id]) words.push("read");
    if (row.dataset.questions) words.push(quizWords(pairs(row.dataset.questions), found.answers));
    if (row.dataset.cards) words.push(deckWords(await queue(found, id, pairs(row.dataset.cards))));
    place.textContent = words.filter(Boolean).join(", ");
    place.toggleAttribute("data-done", Boolean(found.marks[id]) || isDone(row, found));
  }
}

function isDone(row, found) {
  const questions = pairs(row.dataset.questions);
  return questions.length > 0 && questions.every(({ id, rev }) => found.answers[id]?.[rev]?.correct);
}

async function due(found) {
  for (const place of document.querySelectorAll("[data-due]")) {
    const known = found.decks ? Object.keys(found.decks).map((id) => ({ id, cards: [] })) : decks();
    if (!known.length && !place.dataset.href) continue;
    const all = together(await Promise.all(known.map((deck) => queue(found, deck.id, deck.cards))));
    const words = dueWords(all);
    const told = words || restWords(all);
    const ahead = !words && all.ahead ? `; ${many(all.ahead, "card")} can be learnt ahead` : "";
    const link = place.dataset.href && (words || ahead) ? make("a", { href: place.dataset.href }, told) : told;
    place.replaceChildren(make("p", {}, told.startsWith("done") ? "Flashcards " : "Flashcards: ", link, ahead, "."));
  }
}

// What is done of an activity, as far as going on is concerned: read, answered (rightly or not), reviewed for now.
async function stateOf(row, found) {
  const id = row.dataset.progressOf;
  if (row.dataset.cards) {
    const all = together([await queue(found, id, pairs(row.dataset.cards))]);
    return { deck: true, begun: all.seen > 0, done: !all.due && !all.fresh };
  }
  if (row.dataset.questions) {
    const questions = pairs(row.dataset.questions);
    return { begun: questions.some((one) => found.answers[one.id]), done: questions.every((one) => found.answers[one.id]?.[one.rev]) };
  }
  return { begun: Boolean(found.marks[id]), done: Boolean(found.marks[id]) };
}

async function going(found) {
  const place = document.querySelector("[data-go-on]");
  if (place) showNext(place, await nextOf(document.querySelectorAll("[data-progress-of]"), (row) => stateOf(row, found)));
}

function mark(place, found) {
  const activity = place.dataset.mark;
  const button = make("button", { type: "button" });
  const told = make("span", { class: "mark-told", role: "status" });
  let done = Boolean(found.marks[activity]);
  const show = () => {
    button.toggleAttribute("data-done", done);
    button.textContent = done ? "Marked as read – undo" : "Mark as read"; // the words say the state: no aria-pressed
  };
  let id = makeId();
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await backend.mark({ id, activity, done: !done });
      id = makeId();
      done = !done;
      told.textContent = done ? "" : " No longer marked as read."; // the button has the focus and says the other
    } catch (error) {
      told.textContent = ` ${error.message}`;
    }
    button.disabled = false;
    show();
    button.focus();
  });
  show();
  place.classList.add("mark");
  place.replaceChildren(button, told);
}

async function show(found) {
  await rows(found);
  await due(found);
  await going(found);
}

async function again() {
  queues.clear();
  await show(await progress(true));
}

async function start() {
  let found;
  try {
    found = await progress();
  } catch (error) {
    tell("progress", error.message, { "Try again": () => { tell("progress", ""); start(); } });
    return;
  }
  const { sent, lost } = found; // of what waited for the server; a static site has none
  if (lost?.length) tell("lost", lost.join(" "), { "Understood": () => tell("lost", "") });
  if (sent) tell("sent", `${many(sent, "entry", "entries")} that had not reached the server the last time ${sent === 1 ? "is" : "are"} kept now.`);
  const told = Object.values(found.decks ?? {}).find((deck) => deck.told)?.told;
  if (told) tell("clock", told);
  for (const place of document.querySelectorAll("[data-mark]")) mark(place, found);
  for (const place of document.querySelectorAll("[data-study-settings]")) settingsForm(place, found, again);
  await show(found);
  document.documentElement.dataset.progress = "ready";
}

if (page.guide) start();

// A page that the browser shows again from its memory may be behind.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
