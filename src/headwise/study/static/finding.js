// What a search finds in the index of the guide: by the id of a place of the paper, by symbols, by words.

import { normalized, partsOf, pattern, plain, symbolic } from './symbols.js';

// Places that hold no other place. Converters give ids to what lies within them, and end those of paragraphs with
// different numbers: S3.SS2.SSS2.p1.6, S3.E1.m1.1, S4.T1.4.2.
const WHOLE = /(?:^|\.)(?:p|F|T|Ex?|abstract|footnote|bib)\d+$/;
const INNER = /^(?:\.[a-z]*\d+)*$/;

// The text of a query that is meant as the id of a place: typed, or within an address that was copied.
const idOf = (query) => query.trim().slice(query.trim().lastIndexOf('#') + 1).replace(/[.,;:]+$/, '').toLowerCase();

// The place that an id names or, if the paper has none of that id, the nearest one above it; null if there is none.
export function nearestPlace(query, anchors) {
  const byName = new Map(Object.keys(anchors).map((id) => [id.toLowerCase(), id]));
  for (const parts = idOf(query).split('.'); parts.length; parts.pop()) {
    const found = byName.get(parts.join('.'));
    if (found) return found;
  }
  return null;
}

// The place that was asked for: by its id, or by one of what lies within it. So all that `canonical` of
// headwise.study.content makes one place is one here, too.
export function anchorOf(query, anchors) {
  const found = nearestPlace(query, anchors);
  if (!found) return null;
  const inner = idOf(query).slice(found.length);
  return !inner || (WHOLE.test(found) && INNER.test(inner)) ? found : null;
}

// Does it look like an id, though the paper may have no such place?
export const looksLikeId = (query) => /^(?:S|A|bib|footnote)\d*(?:\.[A-Za-z]+\d+)+(?:\.\d+)*$/i.test(idOf(query));

export const wordsOf = (query) => plain(query).split(/[^\p{L}\p{N}_.]+/u).map((word) => word.replace(/^\.+|\.+$/g, '')).filter(Boolean);

const weights = { Number: 0.3, Source: 0.7, Question: 0.5, Flashcard: 0.5, Lesson: 1.6, Visual: 1.4 };

// { anchor, how, found }: every entry that fits, the best first. All words must be there; the last may be
// unfinished. how: "id", "symbols", "words", or "parts" where no entry has the symbols as they stand.
export function find(query, index) {
  const anchor = anchorOf(query, index.anchors);
  if (anchor) return { anchor, how: 'id', found: sorted(index.entries, (entry) => rests(entry, anchor)) };
  if (!symbolic(query)) {
    const words = wordsOf(query);
    return { anchor: null, how: 'words', found: words.length ? sorted(index.entries, (entry) => ranked(entry, words, texts(entry), score)) : [] };
  }
  const bySymbols = (parts, rate) => {
    const asked = parts.map(pattern);
    return asked.length ? sorted(index.entries, (entry) => ranked(entry, asked, symbols(entry), rate)) : [];
  };
  const found = bySymbols(normalized(query).split(/\s+/).filter(Boolean), within);
  return found.length ? { anchor: null, how: 'symbols', found } : { anchor: null, how: 'parts', found: bySymbols(partsOf(normalized(query)), alone) };
}

// Blocks that rest on a place come before questions about it, and these before whole pages.
function rests(entry, anchor) {
  if (entry.kind === 'Source') return entry.sources[0] === anchor ? 1 : 0;
  if (entry.sources.includes(anchor)) return !entry.url.includes('#') ? 1.5 : entry.kind === 'Question' || entry.kind === 'Flashcard' ? 2 : 4;
  return entry.sources.some((one) => one.startsWith(`${anchor}.`)) ? 0.5 : 0;
}

function ranked(entry, asked, [title, body], rate) {
  let sum = 0;
  for (const one of asked) {
    const inTitle = rate(title, one) * 5, inBody = rate(body, one);
    if (!inTitle && !inBody) return 0;
    sum += inTitle + inBody;
  }
  return sum * (weights[entry.kind] || 1);
}

const kept = new WeakMap(); // texts of an entry, made when first asked for
function made(entry, name, make) {
  if (!kept.has(entry)) kept.set(entry, {});
  return (kept.get(entry)[name] ??= make());
}
const texts = (entry) => made(entry, 'texts', () => [plain(entry.title), plain(`${entry.in} ${entry.words} ${entry.sources.join(' ')}`)]);
const symbols = (entry) => made(entry, 'symbols', () => [normalized(entry.title), normalized(entry.words)]);

const LETTER = /[\p{L}\p{N}]/u, NAME = /[\p{L}\p{N}_^]/u;
// How a piece of text stands: 3 by itself, 2 at the beginning of a word, 1 within one.
function bounds(text, at, length, letter = LETTER) {
  const begins = at === 0 || !letter.test(text[at - 1]);
  const ends = at + length === text.length || !letter.test(text[at + length]);
  return begins ? (ends ? 3 : 2) : 1;
}

// A letter or two are looked for as words, or there would be no end of them.
function score(text, word) {
  let best = 0;
  for (let at = text.indexOf(word); at >= 0 && best < 3; at = text.indexOf(word, at + 1)) best = Math.max(best, bounds(text, at, word.length));
  return best + word.length > 3 || best === 3 ? best : 0;
}

const best = (text, asked, rate) => [...text.matchAll(asked)].reduce((most, found) => Math.max(most, rate(found)), 0);

// A name within a longer one is another: no d_k in head_key. But products are written without a sign.
const within = (text, asked) => best(text, asked, (found) => {
  const bound = bounds(text, found.index, found[0].length);
  return bound === 1 && !/[\^=√/(]/.test(found[0]) ? 0 : bound;
});

// The parts of a formula count as whole names: no h of h_t.
const alone = (text, asked) => best(text, asked, (found) => (bounds(text, found.index, found[0].length, NAME) === 3 ? 3 : 0));

function sorted(entries, rank) {
  return entries
    .map((entry, place) => ({ entry, place, rank: rank(entry) }))
    .filter((one) => one.rank > 0)
    .sort((one, other) => other.rank - one.rank || one.place - other.place)
    .map((one) => one.entry);
}

const LONG = 180;

// A piece of an entry's words around what was asked for.
export function excerpt(entry, query, how) {
  const asked = normalized(query);
  const start = how === 'symbols' ? symbolStart(entry.words, asked.split(/\s+/), within)
    : how === 'parts' ? symbolStart(entry.words, partsOf(asked), alone) : wordStart(entry.words, wordsOf(query));
  const from = Math.max(0, entry.words.lastIndexOf(' ', Math.max(0, start - 60)) + 1);
  let to = from + LONG;
  if (to < entry.words.length) to = Math.max(entry.words.lastIndexOf(' ', to), from + LONG / 2);
  return `${from ? '… ' : ''}${entry.words.slice(from, to)}${to < entry.words.length ? ' …' : ''}`;
}

function wordStart(text, words) {
  const found = words.map((word) => plain(text).indexOf(word)).filter((at) => at >= 0);
  return found.length ? Math.min(...found) : 0;
}

// Normalized text has other places: the first few words are looked for in which the longest symbol is whole.
function symbolStart(text, terms, rate) {
  const asked = pattern(terms.reduce((one, other) => (other.length > one.length ? other : one)));
  for (const { index } of text.matchAll(/\S+/g)) {
    const near = normalized(text.slice(index, index + 60));
    const at = near.search(asked);
    if (at >= 0 && at < 12 && rate(near, asked)) return index;
  }
  return 0;
}

// The known words nearest to one that isn't known, the nearest and most frequent first.
export function nearest(word, index, most = 3) {
  const limit = word.length <= 3 ? 1 : word.length <= 7 ? 2 : 3;
  return [...vocabulary(index)]
    .map(([known, count]) => ({ known, count, far: distance(word, known, limit) }))
    .filter((one) => one.far <= limit)
    .sort((one, other) => one.far - other.far || other.count - one.count || (one.known < other.known ? -1 : 1))
    .slice(0, most)
    .map((one) => one.known);
}

export const known = (word, index) => index.entries.some((entry) => texts(entry).some((text) => text.includes(word)));

const vocabularies = new WeakMap();
function vocabulary(index) {
  if (!vocabularies.has(index)) {
    const counts = new Map();
    for (const entry of index.entries) {
      for (const word of new Set(texts(entry).flatMap((text) => text.match(/[\p{L}][\p{L}\p{N}_]+/gu) || []))) counts.set(word, (counts.get(word) || 0) + 1);
    }
    vocabularies.set(index, counts);
  }
  return vocabularies.get(index);
}

// Letters to change, add, leave out or swap to get from one word to the other; more than `limit` is Infinity.
function distance(one, other, limit) {
  if (Math.abs(one.length - other.length) > limit) return Infinity;
  let before = [], row = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return row[other.length];
}
