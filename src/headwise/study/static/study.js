// What a page says about itself, ids for new entries, and messages to the learner.

const html = document.documentElement;

export const page = {
  mode: html.dataset.mode === "server" ? "server" : "static",
  guide: html.dataset.guide || "",
  root: new URL(html.dataset.root || "./", document.baseURI),
  version: html.dataset.version || "current",
  activity: html.dataset.activity || "",
  language: html.lang || "en-GB",
};

// What went wrong, in words for the learner; `name` is the server's: "conflict", "not-saved", "refused", ...
export class Problem extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

// 32 hexadecimal digits; works on pages without https too, where crypto.randomUUID is missing.
export function makeId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const makeSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];

// A list in an order that a seed gives, the same in every browser (mulberry32, then Fisher and Yates).
export function shuffled(list, seed) {
  const order = [...list];
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  for (let end = order.length - 1; end > 0; end -= 1) {
    const place = Math.floor(next() * (end + 1));
    [order[end], order[place]] = [order[place], order[end]];
  }
  return order;
}

// An element with attributes and children; text is text.
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const day = (at) => new Date(at).toLocaleDateString(page.language, { day: "numeric", month: "long", year: "numeric" });
export const time = (at) => new Date(at).toLocaleTimeString(page.language, { hour: "2-digit", minute: "2-digit" });
export const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;

// A message that another sentence can follow.
export const sentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

const messages = new Map();
// Pages frozen by an earlier headwise lack the role; a region is heard only if it was one before its text came.
document.querySelector("[data-told]")?.setAttribute("role", "status");

// Show a message near the top of the page; the same key replaces it, an empty text takes it away. `actions` maps
// the words on a button to what it does.
export function tell(key, text, actions = {}) {
  const place = document.querySelector("[data-told]");
  if (!place) return;
  let box = messages.get(key);
  if (!text) {
    box?.remove();
    messages.delete(key);
    return;
  }
  if (!box) {
    box = make("p", { class: "told-message" });
    messages.set(key, box);
    place.append(box);
  }
  const buttons = Object.entries(actions).map(([words, act]) => make("button", { type: "button", onclick: act }, words));
  box.replaceChildren(text, ...buttons.flatMap((button) => [" ", button]));
}

// Something per tab that a reload keeps. Browsers may forbid it: then nothing is kept.
export const draft = {
  read(key) {
    try {
      return JSON.parse(sessionStorage.getItem(`headwise-study-draft/${key}`));
    } catch {
      return null;
    }
  },
  write(key, value) {
    try {
      if (value === null) sessionStorage.removeItem(`headwise-study-draft/${key}`);
      else sessionStorage.setItem(`headwise-study-draft/${key}`, JSON.stringify(value));
    } catch {
      // the answer is still in the form
    }
  },
  // All that begin with a key.
  drop(start) {
    try {
      Object.keys(sessionStorage).filter((key) => key.startsWith(`headwise-study-draft/${start}`)).forEach((key) => sessionStorage.removeItem(key));
    } catch {
      // nothing is kept here
    }
  },
};
