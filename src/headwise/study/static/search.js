// The search page: words, symbols, or the address of a place in the paper, in whatever way a converter wrote it.

import { excerpt, find, known, looksLikeId, nearest, nearestPlace, wordsOf } from './finding.js';

const root = document.documentElement.dataset.root || './';
const form = document.querySelector('[data-search]');
const field = form?.querySelector('input');
const results = document.querySelector('[data-search-results]');
const told = document.querySelector('[data-search-told]');
const help = document.querySelector('[data-search-help]');
const MOST = 40;

function made(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function row(entry, query, how) {
  const link = made('a', '', entry.title);
  link.href = root + entry.url;
  const line = made('li', 'result', link, made('p', 'result-kind', [entry.kind, entry.in].filter(Boolean).join(' · ')));
  const words = excerpt(entry, query, how);
  if (words) line.append(made('p', 'result-words', words));
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

const counted = (count) => (count === 1 ? '1 result' : `${count} results`);

function said(query, { anchor, how, found }) {
  const count = found.length > MOST ? `${counted(found.length)}; the best ${MOST} are shown` : counted(found.length);
  if (anchor) return `${anchor} is ${index.anchors[anchor]} of the paper: ${count}`;
  if (!found.length) return looksLikeId(query) ? `The paper has no place “${query.trim()}”` : `Nothing in the guide has “${query.trim()}”`;
  return how === 'parts' ? `Nothing has “${query.trim()}” as it stands. With all of its parts: ${count}` : count;
}

// What may have been meant, where nothing was found: each way a link that searches for it.
function instead(query) {
  if (looksLikeId(query)) {
    const above = nearestPlace(query, index.anchors);
    return above ? [['The nearest place above it:', [above]]] : [];
  }
  const words = [...new Set(wordsOf(query))], missing = words.filter((word) => !known(word, index));
  const lines = missing.map((word) => [`For “${word}”, the guide’s nearest words:`, nearest(word, index)]);
  if (words.length > 1 && words.length > missing.length) lines.push(['No place has all of it. One word alone:', words.filter((word) => !missing.includes(word))]);
  return lines.filter(([, ways]) => ways.length);
}

function offer(query) {
  const box = help.querySelector('[data-search-instead]');
  box.replaceChildren(...instead(query).map(([words, ways]) => made('p', '', `${words} `, ...ways.flatMap((way, place) => {
    const link = made('a', '', way);
    link.href = `?q=${encodeURIComponent(way)}`;
    return place ? [', ', link] : [link];
  }))));
}

async function show(query, open) {
  help.hidden = true;
  if (!query.trim()) {
    results.replaceChildren();
    told.textContent = '';
    return;
  }
  try {
    await load();
  } catch {
    told.textContent = 'The search index could not be read. Is the page still being served?';
    return;
  }
  if (query !== field.value) return; // something else was typed meanwhile
  const result = find(query, index);
  if (result.anchor && open && result.found.length) {
    location.replace(root + result.found[0].url); // so that going back leads to where the reader asked
    return;
  }
  results.replaceChildren(...result.found.slice(0, MOST).map((entry) => row(entry, query, result.how)));
  told.textContent = said(query, result);
  if (!result.found.length) {
    offer(query);
    help.hidden = false;
  }
}

// The address holds what is asked, so that a reload and a link ask it again.
const keep = (query) => history.replaceState(null, '', query ? `?q=${encodeURIComponent(query)}` : location.pathname);

if (form) {
  let waiting = 0;
  field.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      keep(field.value);
      show(field.value, false);
    }, 120);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    keep(field.value);
    show(field.value, true);
  });
  const asked = new URLSearchParams(location.search).get('q');
  if (field.value) { // typed before this script was there
    keep(field.value);
    show(field.value, false);
  }
  else if (asked) {
    field.value = asked;
    show(asked, true);
  }
}
