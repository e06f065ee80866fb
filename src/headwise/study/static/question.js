// One question: its form, its answer, and what is said about it.

import { backend } from "./backend.js";
import { Ordering } from "./ordering.js";
import { safe } from "./safe.js";
import { day, draft, make, makeId, makeSeed, page, sentence, shuffled } from "./study.js";

export class Question {
  constructor(form) {
    this.form = form;
    this.id = form.dataset.question;
    this.rev = Number(form.dataset.rev);
    this.kind = form.dataset.kind;
    this.result = null;
    this.open = true; // may be answered now
    this.profile = null; // not known before progress has arrived
    this.used = false; // by the learner, on this page
    this.sending = null; // the id and the text of an answer that has not arrived
    this.options = form.querySelector("[data-options]");
    this.ordering = this.kind === "order" ? new Ordering(form.querySelector("[data-items]"), () => this.change()) : null;
    this.submit = make("button", { type: "submit" }, "Check");
    this.retry = make("button", { type: "button", hidden: true, onclick: () => this.again() }, "Try again");
    this.show = make("button", { type: "button", hidden: true, onclick: () => this.recall() }, "Show why");
    this.note = make("p", { class: "earlier-wording", hidden: true });
    this.feedback = make("div", { class: "feedback", tabindex: "-1" }); // gets the focus, which reads it out
    form.append(make("div", { class: "question-actions" }, this.submit, this.retry, this.show), this.note, this.feedback);
    form.addEventListener("submit", (event) => { event.preventDefault(); if (this.open) this.send(); });
    form.addEventListener("input", () => this.change());
    this.reshuffle(makeSeed());
  }

  // Answers as the server takes them: a text, or a list of names.
  given() {
    if (this.ordering) return this.ordering.names();
    if (this.options) return [...this.options.querySelectorAll("input:checked")].map((input) => input.value);
    return this.form.elements.given.value;
  }

  // Did the learner do anything here?
  touched() { return this.ordering ? this.ordering.touched : this.given().length > 0; }

  fill(given) {
    if (this.ordering) this.ordering.arrange(given);
    else if (this.options) for (const input of this.options.querySelectorAll("input")) input.checked = [given].flat().includes(input.value);
    else this.form.elements.given.value = typeof given === "string" ? given : "";
  }

  reshuffle(seed) {
    this.seed = seed;
    if (this.options) {
      const sorted = [...this.options.children].sort((left, right) => (left.dataset.option < right.dataset.option ? -1 : 1));
      this.options.append(...shuffled(sorted, seed));
    }
    this.ordering?.shuffle(seed);
  }

  // Drafts live in the tab: going to another page and back loses nothing.
  get key() { return `${this.profile}/${page.guide}/${this.id}/${this.rev}`; }
  hold(value) { if (this.profile !== null) draft.write(this.key, value); }
  keep() { if (this.open) this.hold({ given: this.given(), seed: this.seed }); }
  change() {
    this.used = true;
    this.keep();
  }

  // What was answered earlier, by revision. It may arrive late: what the learner did meanwhile stays.
  restore(answers, profile) {
    this.profile = profile;
    const busy = this.used || this.sending !== null || this.result !== null;
    if (busy && this.used) this.keep();
    const held = busy ? null : draft.read(this.key);
    if (held) {
      this.reshuffle(held.seed);
      this.fill(held.given);
      if (this.ordering) this.ordering.touched = true;
    }
    const last = answers[this.rev];
    const older = Object.keys(answers).map(Number).filter((rev) => rev !== this.rev).sort((left, right) => right - left)[0];
    if (this.result !== null) return; // answered here already
    if (last && busy) {
      this.note.textContent = `You answered this on ${day(last.at)}: ${last.correct ? "right" : "not right"}.`;
      this.note.hidden = false;
    } else if (last && !held) {
      this.reshuffle(last.seed);
      this.fill(last.given);
      this.past = last;
      this.result = { correct: last.correct };
      this.close();
      this.show.hidden = false;
      this.tell(`You answered this on ${day(last.at)}: ${last.correct ? "right" : "not right"}.`, last.correct);
    } else if (older !== undefined) {
      const answer = answers[older];
      this.note.textContent = `You answered an earlier wording of this question on ${day(answer.at)}: ${answer.correct ? "right" : "not right"}.`;
      this.note.hidden = false;
    }
  }

  // Submit on its own, or only together with the others.
  alone(yes) { this.submit.classList.toggle("unseen", !yes); this.submit.disabled = !yes || !this.open; }

  async send({ focus = true } = {}) {
    const given = this.given();
    const text = JSON.stringify(given);
    if (this.sending?.text !== text) this.sending = { id: makeId(), text };
    this.submit.disabled = true;
    try {
      const { result } = await backend.answer({ id: this.sending.id, question: this.id, rev: this.rev, given, seed: this.seed });
      this.past = { id: this.sending.id, given, seed: this.seed };
      this.sending = null;
      this.hold(null);
      this.grade(result);
    } catch (error) {
      this.submit.disabled = this.submit.classList.contains("unseen");
      const kept = error.name === "not-an-answer";
      this.feedback.className = kept ? "feedback" : "feedback not-saved";
      this.feedback.replaceChildren(make("p", {}, kept ? error.message : `${sentence(error.message)} Your answer is still in the form.`));
    }
    if (focus) this.feedback.focus();
  }

  // The reasons of an answer given earlier: graded again under its own id, so it counts once.
  async recall() {
    try {
      const { result } = await backend.answer({ id: this.past.id, question: this.id, rev: this.rev, given: this.past.given, seed: this.past.seed });
      this.grade(result);
    } catch (error) {
      this.feedback.replaceChildren(make("p", {}, error.message));
    }
    this.feedback.focus();
  }

  grade(result) {
    this.result = result;
    this.close();
    this.show.hidden = true;
    this.note.hidden = true;
    for (const option of result.options) this.explainOption(option);
    for (const item of result.items) this.ordering.explain(item);
    this.tell(result.verdict, result.correct);
    const rest = [];
    if (result.why) rest.push(make("div", { class: "feedback-why" }, safe(result.why)));
    const explain = result.explain ? make("div", { class: "feedback-explain" }, safe(result.explain)) : null;
    if (result.correct || this.options) rest.push(explain);
    else rest.push(make("details", { class: "answer" }, make("summary", {}, "Show the answer"), make("div", { class: "feedback-right-answer" }, safe(result.right)), explain));
    this.feedback.append(...rest.filter(Boolean));
    this.form.dispatchEvent(new CustomEvent("graded", { bubbles: true }));
  }

  explainOption({ key, chosen, correct, why }) {
    const option = this.options.querySelector(`[data-option="${CSS.escape(key)}"]`);
    const several = this.kind === "multiple";
    const words = chosen ? (correct ? "Right: you chose it." : "Wrong: you chose it.")
      : correct ? (several ? "This is right too: you left it out." : "This is right.")
      : several ? "Wrong, and you rightly left it out." : "Wrong.";
    option?.append(make("div", { class: `why ${correct ? "why-right" : "why-wrong"}`, "data-why": true }, make("p", { class: "verdict" }, words), safe(why)));
  }

  tell(verdict, correct) {
    this.feedback.className = `feedback ${correct ? "feedback-right" : "feedback-wrong"}`;
    this.feedback.replaceChildren(make("p", { class: "verdict" }, verdict));
  }

  close() {
    this.open = false;
    this.submit.hidden = true;
    this.retry.hidden = false;
    for (const input of this.form.querySelectorAll("fieldset input")) input.disabled = true;
    this.ordering?.enable(false);
  }

  again() {
    this.open = true;
    this.result = null;
    this.submit.hidden = false;
    this.submit.disabled = this.submit.classList.contains("unseen");
    this.retry.hidden = true;
    this.show.hidden = true;
    this.feedback.className = "feedback";
    this.feedback.replaceChildren();
    for (const why of this.form.querySelectorAll("[data-why]")) why.remove();
    const inputs = [...this.form.querySelectorAll("fieldset input")];
    for (const input of inputs) {
      input.disabled = false;
      if (input.type !== "text") input.checked = false;
    }
    if (this.ordering) {
      this.ordering.touched = false;
      this.ordering.enable(true);
    }
    this.reshuffle(makeSeed());
    this.hold(null);
    this.form.dispatchEvent(new CustomEvent("graded", { bubbles: true }));
    (this.ordering?.first() ?? this.form.querySelector("fieldset input"))?.focus();
  }
}
