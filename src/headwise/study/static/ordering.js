// Things to be put in order: buttons move each one up and down, so that keys and a pointer do the same.

import { safe } from "./safe.js";
import { make, shuffled } from "./study.js";

export class Ordering {
  constructor(list, changed) {
    this.list = list;
    this.changed = changed;
    this.touched = false;
    this.off = false;
    this.live = make("p", { class: "unseen", role: "status" });
    list.after(this.live);
    for (const item of list.children) {
      const text = item.textContent.trim();
      const button = (by, words) => make("button", {
        type: "button", class: "move", "data-by": by, "aria-label": `Move ${words}: ${text}`, onclick: () => this.move(item, by),
      }, words === "up" ? "Up" : "Down");
      item.append(make("span", { class: "moves" }, button(-1, "up"), button(1, "down")));
    }
    this.ends();
  }

  items() { return [...this.list.children]; }
  names() { return this.items().map((item) => item.dataset.item); }
  first() { return this.list.querySelector("button.move:not(:disabled)"); }

  arrange(names) {
    const byName = new Map(this.items().map((item) => [item.dataset.item, item]));
    if (Array.isArray(names)) this.list.append(...names.map((name) => byName.get(name)).filter(Boolean));
    this.ends();
  }

  shuffle(seed) {
    this.arrange(shuffled(this.names().sort(), seed));
  }

  move(item, by) {
    const other = by < 0 ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    if (by < 0) other.before(item);
    else other.after(item);
    this.touched = true;
    this.ends();
    const buttons = [...item.querySelectorAll("button.move")];
    (buttons.find((button) => Number(button.dataset.by) === by && !button.disabled) ?? buttons.find((button) => !button.disabled))?.focus();
    this.live.textContent = `Now in place ${this.items().indexOf(item) + 1} of ${this.items().length}.`;
    this.changed();
  }

  // The first can't go up, the last can't go down.
  ends() {
    const items = this.items();
    items.forEach((item, place) => {
      for (const button of item.querySelectorAll("button.move")) {
        button.disabled = this.off || (Number(button.dataset.by) < 0 ? place === 0 : place === items.length - 1);
      }
    });
  }

  enable(yes) {
    this.off = !yes;
    this.ends();
  }

  explain({ key, place, right_place: belongs, why }) {
    const item = this.items().find((one) => one.dataset.item === key);
    const right = place === belongs;
    const words = right ? `Right in place ${belongs}.` : `You put it in place ${place}; it belongs in place ${belongs}.`;
    item?.append(make("div", { class: `why ${right ? "why-right" : "why-wrong"}`, "data-why": true }, make("p", { class: "verdict" }, words), safe(why)));
  }
}
