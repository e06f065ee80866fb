// What every page does: boxes that scroll can be reached by keyboard, permanent links are copied, the contents
// follow the reader, and print shows everything.

// Boxes that are wider than their place

const sizes = new ResizeObserver((entries) => { for (const { target } of entries) reach(target.closest('.scroll')); });
const SLACK = 1; // a pixel of rounding is no more to see

// Only a box with more in it than is seen is a stop of Tab, has a name and says that it scrolls.
function reach(box) {
  const high = box.scrollHeight > box.clientHeight + SLACK && getComputedStyle(box).overflowY === 'auto';
  const wide = box.scrollWidth > box.clientWidth + SLACK && getComputedStyle(box).overflowX === 'auto';
  if (high || wide) box.tabIndex = 0;
  else box.removeAttribute('tabindex');
  if (box.dataset.name) {
    for (const [name, value] of [['role', 'group'], ['aria-label', box.dataset.name]]) {
      if (wide) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
  }
  hint(box, wide);
  more(box, wide);
}

// Which sides go on: the style sheet lets them fade.
function more(box, wide) {
  const sides = [];
  if (wide && box.scrollLeft > SLACK) sides.push('before');
  if (wide && box.scrollLeft + box.clientWidth < box.scrollWidth - SLACK) sides.push('after');
  if (sides.length) box.dataset.more = sides.join(' ');
  else delete box.dataset.more;
}

function hint(box, wide) {
  if (box.matches('.formula')) return; // within a line of text; its fading side has to do
  let line = box.nextElementSibling;
  if (!line?.matches('.scroll-hint')) {
    if (!wide) return;
    line = document.createElement('p');
    line.className = 'scroll-hint';
    line.setAttribute('aria-hidden', 'true'); // a program that reads aloud reads all of it anyway
    line.textContent = '← there is more: scroll sideways →';
    box.after(line);
  }
  line.hidden = !wide;
}

function watchBoxes(within = document) {
  for (const box of within.querySelectorAll('.scroll')) {
    reach(box);
    sizes.observe(box);
    for (const child of box.children) sizes.observe(child); // what is in it may grow
  }
}
watchBoxes();
document.fonts?.ready.then(() => document.querySelectorAll('.scroll').forEach(reach));
document.addEventListener('toggle', (event) => { if (event.target.open) watchBoxes(event.target); }, true);
document.addEventListener('scroll', ({ target }) => { if (target.matches?.('.scroll')) more(target, true); }, { capture: true, passive: true });

// Permanent links

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'unseen';
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}

const told = document.createElement('p');
told.className = 'toast';
told.setAttribute('role', 'status');
document.body.append(told);
let hiding = 0;

function tell(text) {
  told.textContent = text;
  told.classList.add('toast-shown');
  clearTimeout(hiding);
  hiding = setTimeout(() => { told.classList.remove('toast-shown'); told.textContent = ''; }, 4000);
}

document.addEventListener('click', async (event) => {
  const link = event.target.closest?.('a[data-permalink]');
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const address = new URL(link.href, document.baseURI).href;
  history.replaceState(null, '', `#${address.split('#')[1]}`);
  const lasting = /\/v\/\d+\//.test(address);
  tell(await copied(address)
    ? (lasting ? 'Permanent link copied' : 'Link copied. This place is in no published version yet, so it may change.')
    : address);
});

// A link into something folded opens it

function openTo(hash) {
  if (hash.length < 2) return;
  let target = null;
  try {
    target = document.getElementById(decodeURIComponent(hash.slice(1)));
  } catch {
    return; // a % that stands for nothing, as in #100%
  }
  if (!target) return;
  let opened = false;
  for (let at = target.matches('details') ? target : target.querySelector(':scope > details') || target.closest('details'); at; at = at.parentElement?.closest('details')) {
    if (!at.open) { at.open = true; opened = true; }
  }
  if (opened) target.scrollIntoView();
}
openTo(location.hash);
addEventListener('hashchange', () => openTo(location.hash));

// The contents follow the reader

const lines = new Map([...document.querySelectorAll('.outline .toc a')].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
if (lines.size) {
  const blocks = [...lines.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  let now = null;
  const follow = () => {
    const line = innerHeight * 0.3;
    let found = null;
    for (const block of blocks) if (block.getBoundingClientRect().top <= line) found = block;
    const link = found ? lines.get(found.id) : null;
    if (link === now) return;
    now?.removeAttribute('aria-current');
    link?.setAttribute('aria-current', 'true');
    now = link;
  };
  let waiting = false;
  addEventListener('scroll', () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; follow(); });
  }, { passive: true });
  follow();
}

// The part of the outline that the page belongs to is in sight
const outline = document.querySelector('.outline');
const here = outline?.querySelector('.here');
if (here && outline.scrollHeight > outline.clientHeight) outline.scrollTop = here.offsetTop - outline.clientHeight / 4;

// Print shows what is folded, but no solution that wasn't opened

const unfolded = [];
addEventListener('beforeprint', () => {
  for (const one of document.querySelectorAll('details:not([open]):not(.solution):not(.answer):not([data-cards] details)')) {
    one.open = true;
    unfolded.push(one);
  }
  const place = document.querySelector('[data-print-url]');
  if (place) place.textContent = location.href.split('#')[0];
});
addEventListener('afterprint', () => { while (unfolded.length) unfolded.pop().open = false; });
