// The log in this browser's storage. Each entry has a key of its own in localStorage, written once, so that two tabs
// can't overwrite each other and a tab that is closed in the middle leaves nothing half written. Each is read and
// checked once for a page: storage is looked through for keys that are new or gone, and another tab tells which one it
// wrote.

import * as days from "./days.js";
import { Problem } from "./study.js";
import { COLUMNS, fits } from "./transfer.js";

const PREFIX = "headwise-study/";
const SETTINGS = `${PREFIX}settings`;
const IMPORTING = `${PREFIX}importing`; // what was there before an import that is under way
const FULL = "This browser’s storage is full, so nothing was saved. Export your progress, free some storage, then try again.";

const memory = new Map(); // where there is no storage
const read = new Map(); // key -> entry; null for what can't be read, which is left where it is and not counted
let storage; // localStorage, or null; undefined until it was tried, which is once
let lists = new Map();

function probed() {
  try {
    localStorage.setItem(`${PREFIX}probe`, "");
    localStorage.removeItem(`${PREFIX}probe`);
    return localStorage;
  } catch (error) {
    if (error?.name === "QuotaExceededError" && localStorage.length) return localStorage; // full, and there
    return null;
  }
}

function store() {
  if (storage === undefined) storage = probed();
  return storage;
}

export const keeps = () => store() !== null;
const keys = () => (store() ? Array.from({ length: storage.length }, (_, place) => storage.key(place)) : [...memory.keys()]);
const get = (key) => (store() ? storage.getItem(key) : memory.get(key) ?? null);

function put(key, value) {
  if (!store()) { memory.set(key, value); return; }
  try {
    storage.setItem(key, value);
  } catch {
    throw new Problem("not-saved", FULL);
  }
}

function drop(key) {
  if (store()) storage.removeItem(key);
  else memory.delete(key);
}

function forget(key) {
  if (key === null) read.clear();
  else read.delete(key);
  lists = new Map();
}

const kindOf = (key) => Object.keys(COLUMNS).find((kind) => key.startsWith(`${PREFIX}${kind}/`));
addEventListener("storage", ({ key }) => { if (key === null || kindOf(key)) forget(key); });

function parsed(key, kind) {
  try {
    const entry = JSON.parse(get(key));
    if (!fits(kind, entry) || key !== `${PREFIX}${kind}/${entry.id}`) return null;
    const said = days.read(entry.at);
    return { ...entry, said, at: Math.min(said, days.read(entry.arrived) ?? said) };
  } catch {
    return null; // another program wrote there
  }
}

// Bring what was read up to date. Entries of an import that is not done don't count.
function look() {
  const halfway = new Set(JSON.parse(get(IMPORTING) ?? "[]").map(([key]) => key));
  const found = new Set(keys().filter((key) => kindOf(key) && !halfway.has(key)));
  for (const key of read.keys()) if (!found.has(key)) forget(key);
  for (const key of found) {
    if (read.has(key)) continue;
    forget(key);
    read.set(key, parsed(key, kindOf(key)));
  }
}

// All entries of a kind, by the instant they count from, which is `at`; `said` is the one that they were written with.
// One list as long as the log is the same.
export function entries(kind) {
  look();
  if (!lists.has(kind)) {
    const found = [...read].filter(([key, entry]) => entry && kindOf(key) === kind).map(([, entry]) => entry);
    lists.set(kind, found.sort((left, right) => left.at - right.at || left.said - right.said || (left.id < right.id ? -1 : 1)));
  }
  return lists.get(kind);
}

export function known(kind, id) {
  look();
  return read.get(`${PREFIX}${kind}/${id}`) ?? null;
}

export function add(kind, entry) {
  put(`${PREFIX}${kind}/${entry.id}`, JSON.stringify(entry));
}

export const readSettings = () => JSON.parse(get(SETTINGS)) ?? {};
export const writeSettings = (values) => put(SETTINGS, JSON.stringify(values));

// Every entry, those that can't be read too.
export function clear() {
  keys().filter(kindOf).forEach(drop);
}

// Add entries, as [kind, entry], and settings: all or nothing, also where the tab is closed on the way. An entry that is
// there already is written anew.
export function addAll(fresh, settings) {
  const written = [...fresh.map(([kind, entry]) => [`${PREFIX}${kind}/${entry.id}`, entry]), [SETTINGS, settings]];
  put(IMPORTING, JSON.stringify(written.map(([key]) => [key, get(key)])));
  try {
    for (const [key, value] of written) put(key, JSON.stringify(value));
  } catch (error) {
    takeBack();
    throw error;
  }
  drop(IMPORTING);
  for (const [key] of written) forget(key);
}

// Leave an import that did not come to its end as if it had never begun.
function takeBack() {
  const before = JSON.parse(get(IMPORTING) ?? "null");
  if (!before) return;
  for (const [key] of before) drop(key); // makes room first
  for (const [key, text] of before) if (text !== null) put(key, text);
  for (const [key] of before) forget(key);
  drop(IMPORTING);
}

// One tab at a time, where the browser can hold a lock (it can't on pages without https). Who holds it finds no import
// under way: the tab of one that is there is gone.
export function alone(act) {
  const whole = () => { takeBack(); return act(); };
  return navigator.locks ? navigator.locks.request("headwise-study", whole) : whole();
}

// Ask the browser, once, not to delete what is kept when it needs room. It may say no, or ask the learner.
let asked = false;
export function lasting() {
  if (asked || !keeps()) return;
  asked = true;
  navigator.storage?.persist?.().catch(() => {});
}
