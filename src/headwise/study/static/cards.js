// Reviewing a deck, by keyboard first: space turns the card, 1 to 4 rate it, u takes the last rating back.

import { backend, progress } from "./backend.js";
import { capital, dueWords, restWords, together } from "./due.js";
import { copied } from "./safe.js";
import { make, makeId, many, page, tell } from "./study.js";

const RATINGS = [[1, "Again"], [2, "Hard"], [3, "Good"], [4, "Easy"]];
const KEYS = [["Space", "begin, turn the card, learn ahead"], ["1, 2, 3, 4", "again, hard, good, easy"], ["U", "take the last rating back"]];
const KINDS = { changed: "changed", learning: "being learnt", review: "to review", new: "new" };
const SOON = 86_400_000;

class Review {
  constructor(section) {
    this.deck = section.dataset.deck;
    this.place = section.querySelector("[data-review]");
    this.items = new Map([...section.querySelectorAll("[data-card]")].map((item) => [item.dataset.card, item]));
    this.cards = [...this.items.values()].map((item) => ({ id: item.dataset.card, rev: Number(item.dataset.rev) }));
    this.shortcuts = true;
    this.started = false;
    this.turned = false;
    this.busy = false;
    this.early = new Set(); // cards that the learner wants before they are due
    this.counts = make("p", { class: "review-counts" });
    this.told = make("p", { class: "review-told", role: "status" });
    this.stage = make("div", { class: "review-stage" });
    this.undo = make("button", { type: "button", "data-undo": true, hidden: true, onclick: () => this.takeBack() }, "Undo the last rating");
    this.place.classList.add("review");
    this.place.append(this.counts, this.stage, make("div", { class: "review-answers" }, this.undo), this.told, this.help());
    addEventListener("keydown", (event) => this.press(event));
    this.open();
  }

  help() {
    this.toggle = make("input", { type: "checkbox", id: "review-shortcuts", checked: true, onchange: () => this.switchKeys() });
    const rows = KEYS.flatMap(([keys, does]) => [make("dt", {}, make("kbd", {}, keys)), make("dd", {}, does)]);
    return make("details", { class: "review-keys" }, make("summary", {}, "Keyboard"), make("dl", {}, ...rows),
      make("p", {}, this.toggle, " ", make("label", { for: "review-shortcuts" }, "Single keys do this on pages of cards")));
  }

  async open() {
    try {
      const found = await progress();
      this.shortcuts = found.settings.shortcuts;
      this.toggle.checked = this.shortcuts;
      if (!backend.keeps()) tell("storage", backend.gone);
      this.take(await backend.queue(this.deck, this.cards));
    } catch (error) {
      this.fail(error, () => this.open());
    }
  }

  async switchKeys() {
    this.shortcuts = this.toggle.checked;
    try {
      await backend.settings({ shortcuts: this.shortcuts });
    } catch (error) {
      this.told.textContent = error.message;
    }
  }

  // A new queue. A card whose answer is another one here than in the queue is not asked on this page: what is
  // rated has to be the answer that was seen.
  take(queue, first = "") {
    clearTimeout(this.timer);
    this.queue = queue;
    tell("clock", queue.told);
    this.undo.hidden = !queue.undo;
    const here = (one) => Number(this.items.get(one.card)?.dataset.rev) === one.rev;
    this.due = queue.cards.filter(here);
    this.ahead = queue.ahead.filter(here);
    this.elsewhere(queue.cards.length - this.due.length);
    if (this.ahead.some((one) => one.card === first)) this.early.add(first); // an undone rating, given ahead
    const asked = [...this.due, ...this.ahead.filter((one) => this.early.has(one.card))];
    this.now = asked.find((one) => one.card === first) ?? asked[0] ?? null;
    this.all = together([{ ...queue, cards: this.due, ahead: this.ahead }]);
    this.counts.textContent = `${this.dueNow()} ${queue.done ? `${many(queue.done, "review")} today.` : ""}`;
    if (!this.now) this.rest();
    else if (this.started) this.front();
    else this.offer();
  }

  // "3 cards due (1 being learnt, 2 to review), 10 new cards."
  dueNow() {
    if (!this.due.length) return this.queue.cards.length ? "No card of this page is due now." : "No card is due now.";
    const count = (kind) => this.due.filter((one) => one.kind === kind).length;
    const parts = Object.entries(KINDS).filter(([kind]) => kind !== "new" && count(kind)).map(([kind, words]) => `${count(kind)} ${words}`);
    return `${dueWords(this.all).replace(" due", ` due (${parts.join(", ")})`)}.`;
  }

  // Cards that are due and are other ones in the guide now.
  elsewhere(count) {
    const what = count === 1 ? "1 card that is due is" : `${count} cards that are due are`;
    if (!count) tell("elsewhere", "");
    else if (page.version === "current") {
      tell("elsewhere", `${what} newer than this page: reload it to review ${count === 1 ? "it" : "them"}.`, { "Reload the page": () => location.reload() });
    } else {
      const there = new URL(`../../${encodeURIComponent(page.activity)}/`, page.root);
      tell("elsewhere", `${what} newer than this version, and reviewed in the current guide.`, { "Go to the current cards": () => location.assign(there) });
    }
  }

  offer() {
    this.start = make("button", { type: "button", onclick: () => this.begin() }, `Review ${many(this.due.length, "card")}`);
    this.stage.replaceChildren(this.start);
  }

  begin() {
    this.started = true;
    this.front();
  }

  rest() {
    const { next, now } = this.all;
    const end = make("p", { class: "review-end", tabindex: "-1" }, `${capital(restWords(this.all))}.`);
    const count = this.ahead.length;
    this.sooner = count ? make("button", { type: "button", onclick: () => this.learnAhead() }, `Learn ${many(count, "card")} ahead`) : null;
    const why = count ? make("p", { class: "review-ahead" }, `${count === 1 ? "It is" : "They are"} being learnt, due within 20 minutes, and not counted as due.`) : null;
    this.stage.replaceChildren(...[end, this.sooner, why].filter(Boolean));
    if (this.started) end.focus();
    if (next !== null && next - now < SOON) this.timer = setTimeout(() => this.refresh(), Math.min(next - now + 500, 3_600_000));
  }

  // Each card that may come early, once: one that is rated "again" waits its minute.
  learnAhead() {
    this.early = new Set(this.ahead.map((one) => one.card));
    this.started = true;
    this.take(this.queue);
  }

  async refresh() {
    try {
      this.take(await backend.queue(this.deck, this.cards));
    } catch (error) {
      this.fail(error, () => this.refresh());
    }
  }

  front() {
    this.turned = false;
    this.since = performance.now();
    const item = this.items.get(this.now.card);
    const note = this.now.kind === "changed" ? make("p", { class: "review-changed" }, "The answer to this card has changed since you last saw it.") : null;
    this.side = make("div", { class: "review-front", tabindex: "-1" }, copied(item.querySelector("[data-front]")));
    this.turn = make("button", { type: "button", onclick: () => this.back() }, "Show the answer");
    this.card = make("div", { class: "review-card", role: "group", "aria-label": `Card, ${KINDS[this.now.kind]}` }, note, this.side);
    this.answers = make("div", { class: "review-answers" }, this.turn);
    this.stage.replaceChildren(this.card, this.answers);
    this.side.focus();
  }

  back() {
    if (this.turned) return;
    this.turned = true;
    const item = this.items.get(this.now.card);
    const side = make("div", { class: "review-back", tabindex: "-1" }, copied(item.querySelector("[data-back]")));
    this.card.append(side);
    this.rate = RATINGS.map(([rating, words]) => make("button", { type: "button", "data-rating": rating, onclick: () => this.rated(rating) },
      words, make("span", { class: "review-next" }, ` ${this.now.waits[rating]}`)));
    this.answers.replaceChildren(...this.rate);
    side.focus();
  }

  // A rating is shown as given only when it is kept.
  async rated(rating) {
    if (this.busy || !this.turned) return;
    const { card, head } = this.now;
    const rev = Number(this.items.get(card).dataset.rev);
    const duration = Math.min(Math.round(performance.now() - this.since), 86_400_000);
    await this.send(() => backend.review, { id: makeId(), card, rev, rating, expects: head, duration, deck: this.deck, cards: this.cards },
      (answer) => {
        this.early.delete(card);
        this.told.textContent = answer.told || `${RATINGS[rating - 1][1]}: it comes back in ${answer.wait}.`;
        this.take(answer.queue);
      });
  }

  async takeBack() {
    if (this.busy || !this.queue?.undo) return;
    await this.send(() => backend.undo, { id: makeId(), undoes: this.queue.undo, deck: this.deck, cards: this.cards },
      (answer) => {
        this.started = true;
        this.take(answer.queue, answer.card);
        this.told.textContent = `The last rating is taken back${this.now?.card === answer.card ? "; here is the card again" : ""}.`;
      });
  }

  // Send until it arrives or is given up: always under the same id, so it counts once.
  async send(which, entry, done) {
    this.busy = true;
    this.disable(true);
    try {
      done(await which()(entry));
    } catch (error) {
      if (error.name === "conflict") {
        this.told.textContent = error.message;
        await this.refresh();
      } else {
        this.fail(error, () => this.send(which, entry, done), () => { backend.forget?.(entry.id); this.refresh(); });
        return;
      }
    } finally {
      this.busy = false;
    }
    this.disable(false);
  }

  disable(yes) {
    for (const button of this.place.querySelectorAll(".review-stage button, [data-undo]")) button.disabled = yes;
  }

  fail(error, again, giveUp) {
    const box = make("div", { class: "not-saved", role: "group", "aria-label": "What went wrong", tabindex: "-1" }, make("p", {}, error.message),
      make("button", { type: "button", onclick: () => { box.remove(); again(); } }, "Try again"),
      giveUp ? make("button", { type: "button", onclick: () => { box.remove(); this.disable(false); giveUp(); } }, "Leave it") : null);
    this.stage.prepend(box);
    box.focus();
  }

  press(event) {
    if (!this.shortcuts || event.altKey || event.ctrlKey || event.metaKey || event.repeat || this.busy || this.stage.querySelector(".not-saved")) return;
    const at = event.target instanceof Element ? event.target : document.body;
    if (at.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (at !== document.body && !this.place.contains(at) && at.id !== "main") return;
    if (event.key === " ") {
      if (at.closest("button, summary, a, input")) return; // the key presses what it stands on
      if (!this.started && this.now) this.begin();
      else if (this.started && this.now && !this.turned) this.back();
      else if (!this.now && this.sooner) this.learnAhead();
      else return;
    } else if (/^[1-4]$/.test(event.key) && this.turned && this.now) {
      this.rated(Number(event.key));
    } else if (event.key.toLowerCase() === "u" && this.queue?.undo) {
      this.takeBack();
    } else {
      return;
    }
    event.preventDefault();
  }
}

for (const section of document.querySelectorAll("section[data-deck]")) new Review(section);
