// On a page of a frozen version: says whether a newer one exists, and leads to the same place there.

const root = new URL(document.documentElement.dataset.root || './', location.href);
const number = Number(document.documentElement.dataset.version);
const activity = document.documentElement.dataset.activity || '';
const place = document.querySelector('[data-banner] [data-newer]');

function link(text, href) {
  const made = document.createElement('a');
  made.textContent = text;
  made.href = href;
  const follow = () => { made.hash = location.hash; };
  follow();
  addEventListener('hashchange', follow);
  return made;
}

async function look() {
  const front = new URL('../../', root);
  const answer = await fetch(new URL('versions.json', front));
  if (!answer.ok) throw new Error(String(answer.status));
  const { current, pages } = await answer.json();
  const way = decodeURIComponent(location.pathname).split(`/v/${number}/`).pop();
  const same = activity && !pages.includes(activity) ? '' : way;
  const there = new URL(same, front).href;
  if (current > number) {
    place.replaceChildren(`Version ${current} is current: `, link(same === way ? 'the same place in the current guide' : 'the current guide', there), '.');
  } else {
    place.replaceChildren('This is the newest version; ', link('the current guide', there), ' may hold changes that are not published yet.');
  }
}

if (place) {
  look().catch(() => {
    const current = link('the current guide', place.querySelector('a').href);
    place.replaceChildren('Whether there is a newer version can’t be told here; the current guide may be newer: ', current, '.');
  });
}
