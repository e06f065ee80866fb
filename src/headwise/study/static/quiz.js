// Questions: answered in forms, graded when submitted, never before. What the page needs: see docs/study/hooks.md.

import { backend, progress } from "./backend.js";
import { Question } from "./question.js";
import { draft, make, many, page, tell } from "./study.js";

const questions = [...document.querySelectorAll("form[data-question]")].map((form) => new Question(form));

async function restore() {
  let found;
  try {
    found = await progress();
  } catch (error) {
    tell("progress", `Earlier answers can’t be shown. ${error.message}`);
    return;
  }
  if (!backend.keeps()) tell("storage", backend.gone);
  for (const question of questions) question.restore(found.answers[question.id] ?? {}, found.profile);
  for (const sheet of sheets) sheet.restore(found.profile);
}

// All questions of a quiz together: how far the learner is, and a way to check everything at once.
class Sheet {
  constructor(section) {
    this.id = section.dataset.quiz;
    this.profile = null; // not known before progress has arrived
    this.questions = questions.filter((question) => section.contains(question.form));
    this.score = make("p", { class: "quiz-score", role: "status" });
    this.together = make("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggle() }, "Answer everything, then check at once");
    this.submit = make("button", { type: "button", onclick: () => this.check() }, "Check all answers");
    this.outcome = make("p", { class: "quiz-outcome", tabindex: "-1" }); // gets the focus, which reads it out
    this.end = make("div", { class: "question-actions quiz-end", hidden: true }, this.submit, this.outcome);
    section.prepend(make("div", { class: "quiz-bar question-actions" }, this.score, this.together));
    section.append(this.end);
    section.addEventListener("graded", () => this.count());
    this.count();
  }

  // As drafts of answers, the way of answering is kept in the tab: going to another page and back changes nothing.
  get key() { return `${this.profile}/${page.guide}/${this.id}/together`; }
  restore(profile) {
    this.profile = profile;
    if (this.chosen) this.hold();
    else if (draft.read(this.key)) this.set(true);
    this.count();
  }
  hold() { if (this.profile !== null) draft.write(this.key, this.on || null); }
  get on() { return this.together.getAttribute("aria-pressed") === "true"; }

  toggle() {
    this.chosen = true; // by the learner, on this page
    this.set(!this.on);
    this.hold();
  }

  set(on) {
    this.together.setAttribute("aria-pressed", String(on));
    this.end.hidden = !on;
    for (const question of this.questions) question.alone(!on);
  }

  count() {
    const graded = this.questions.filter((question) => question.result !== null);
    const right = graded.filter((question) => question.result.correct).length;
    this.score.textContent = graded.length
      ? `${graded.length} of ${many(this.questions.length, "question")} answered, ${right} right.`
      : `${many(this.questions.length, "question")}, in any order; nothing is graded before you submit it.`;
  }

  async check() {
    this.submit.disabled = true;
    const open = this.questions.filter((question) => question.open && question.touched());
    for (const question of open) await question.send({ focus: false });
    this.submit.disabled = false;
    const unread = open.filter((question) => question.result === null); // each says itself what is wrong with it
    const graded = this.questions.filter((question) => question.result !== null);
    const right = graded.filter((question) => question.result.correct).length;
    const left = this.questions.length - graded.length - unread.length;
    this.outcome.replaceChildren(
      `${right} of ${this.questions.length} right.${left ? ` ${left} not answered yet.` : ""}`,
      ...(unread.length ? [" Not graded, for the reason said there: ", ...unread.flatMap((question, place) => [place ? ", " : "", this.link(question)]), "."] : []),
    );
    this.outcome.focus();
  }

  // Leads to what is said about a question's answer.
  link(question) {
    const name = `question ${this.questions.indexOf(question) + 1}`;
    const follow = (event) => { event.preventDefault(); question.feedback.focus(); };
    return make("a", { href: `#${encodeURIComponent(question.id)}`, onclick: follow }, name);
  }
}

const sheets = [...document.querySelectorAll("section[data-quiz]")].map((section) => new Sheet(section));
restore();
