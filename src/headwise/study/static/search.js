// The search page: words, or the address of a place in the paper, in whatever way a converter wrote it.

const root = document.documentElement.dataset.root || './';
const form = document.querySelector('[data-search]');
const field = form?.querySelector('input');
const results = document.querySelector('[data-search-results]');
const told = document.querySelector('[data-search-told]');
const MOST = 40;

const plain = (text) => text.toLowerCase().normalize('NFKD').replace(/\p{M}/gu, '');

// The one id of a place: converters end a paragraph's id with different numbers, which all mean the paragraph.
export function canonical(anchor) {
  const found = /^((?:.*\.)?p\d+)\.\d+(?:\..*)?$/.exec(anchor) || /^((?:.*\.)?[FT]\d+)\.\d+(?:\..*)?$/.exec(anchor);
  return found ? found[1] : anchor;
}

// What was asked for, if it is the id of a place: typed, or within an address that was copied.
export function anchorOf(query, anchors) {
  let text = query.trim();
  const hash = text.lastIndexOf('#');
  if (hash >= 0) text = text.slice(hash + 1);
  const byName = new Map(Object.keys(anchors).map((id) => [id.toLowerCase(), id]));
  for (const one of [text, canonical(text), canonical(text.replace(/[.,;:]+$/, ''))]) {
    const found = byName.get(one.toLowerCase());
    if (found) return found;
  }
  return null;
}

// Every entry with how well it fits, the best first. All words must be there; the last may be unfinished.
export function find(query, index) {
  const anchor = anchorOf(query, index.anchors);
  if (anchor) {
    const rank = (entry) => {
      if (entry.kind === 'Source') return entry.sources[0] === anchor ? 1 : 0;
      if (entry.sources.includes(anchor)) return entry.kind === 'Question' || entry.kind === 'Flashcard' ? 2 : 4;
      return entry.sources.some((one) => one.startsWith(`${anchor}.`)) ? 0.5 : 0;
    };
    return { anchor, found: sorted(index.entries, rank) };
  }
  const words = plain(query).split(/[^\p{L}\p{N}_.]+/u).filter(Boolean);
  if (!words.length) return { anchor: null, found: [] };
  const rank = (entry) => {
    const title = plain(entry.title), body = plain(`${entry.in} ${entry.words} ${entry.sources.join(' ')}`);
    let sum = 0;
    for (const word of words) {
      const inTitle = score(title, word) * 5, inBody = score(body, word);
      if (!inTitle && !inBody) return 0;
      sum += inTitle + inBody;
    }
    return sum * (weights[entry.kind] || 1);
  };
  return { anchor: null, found: sorted(index.entries, rank) };
}

const weights = { Number: 0.3, Source: 0.7, Question: 0.5, Flashcard: 0.5, Lesson: 1.6, Visual: 1.4 };

function score(text, word) {
  const at = text.indexOf(word);
  if (at < 0) return 0;
  const begins = at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]);
  const ends = at + word.length === text.length || !/[\p{L}\p{N}]/u.test(text[at + word.length]);
  return begins ? (ends ? 3 : 2) : 1;
}

function sorted(entries, rank) {
  return entries
    .map((entry, place) => ({ entry, place, rank: rank(entry) }))
    .filter((one) => one.rank > 0)
    .sort((one, other) => other.rank - one.rank || one.place - other.place)
    .map((one) => one.entry);
}

function snippet(entry, query) {
  const words = plain(query).split(/[^\p{L}\p{N}_.]+/u).filter(Boolean);
  const text = plain(entry.words);
  const at = Math.max(0, Math.min(...words.map((word) => { const found = text.indexOf(word); return found < 0 ? Infinity : found; })));
  const from = Number.isFinite(at) ? Math.max(0, entry.words.lastIndexOf(' ', Math.max(0, at - 60)) + 1) : 0;
  const cut = entry.words.slice(from, from + 180);
  return `${from ? '… ' : ''}${cut}${from + 180 < entry.words.length ? ' …' : ''}`;
}

function row(entry, query) {
  const line = document.createElement('li');
  line.className = 'result';
  const link = document.createElement('a');
  link.href = root + entry.url;
  link.textContent = entry.title;
  const kind = document.createElement('p');
  kind.className = 'result-kind';
  kind.textContent = [entry.kind, entry.in].filter(Boolean).join(' · ');
  line.append(link, kind);
  const words = snippet(entry, query);
  if (words) {
    const text = document.createElement('p');
    text.className = 'result-words';
    text.textContent = words;
    line.append(text);
  }
  return line;
}

let index = null;
async function load() {
  if (!index) {
    const answer = await fetch(new URL(form.dataset.search, document.baseURI));
    if (!answer.ok) throw new Error(`search.json: ${answer.status}`);
    index = await answer.json();
  }
  return index;
}

async function show(query, open) {
  if (!query.trim()) {
    results.replaceChildren();
    told.textContent = '';
    return;
  }
  try {
    const { anchor, found } = find(query, await load());
    if (query !== field.value) return; // something else was typed meanwhile
    if (anchor && open && found.length) {
      location.href = root + found[0].url;
      return;
    }
    results.replaceChildren(...found.slice(0, MOST).map((entry) => row(entry, query)));
    const count = found.length === 1 ? '1 result' : `${found.length} results`;
    told.textContent = anchor
      ? `${anchor} is ${index.anchors[anchor]} of the paper: ${count}`
      : found.length > MOST ? `${count}; the best ${MOST} are shown` : found.length ? count : `Nothing in the guide has “${query.trim()}”`;
  } catch {
    told.textContent = 'The search index could not be read. Is the page still being served?';
  }
}

if (form) {
  let waiting = 0;
  field.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(null, '', field.value ? `?q=${encodeURIComponent(field.value)}` : location.pathname);
      show(field.value, false);
    }, 120);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    show(field.value, true);
  });
  const asked = new URLSearchParams(location.search).get('q');
  if (asked) {
    field.value = asked;
    show(asked, true);
  }
}
