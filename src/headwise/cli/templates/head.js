// What stands around the large map: words, numbers, the text, and the tables behind the picture.

const words = [];
let chosenToken = 0;

function meter(share, even) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [name, value] of Object.entries({ class: "meter", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" })) svg.setAttribute(name, value);
  const bar = (kind, x, width) => {
    const rect = document.createElementNS(space, "rect");
    for (const [name, value] of Object.entries({ class: kind, x, y: kind === "even" ? -1 : 1, width, height: kind === "even" ? 12 : 8 })) rect.setAttribute(name, value);
    svg.append(rect);
  };
  bar("back", 0, 100);
  bar("front", 0, 100 * share);
  if (even !== undefined && even !== null) bar("even", Math.min(99.2, 100 * even), 0.8);
  return svg;
}

function describe(facts) {
  const { kind, shares } = facts;
  const lead = {
    broad: "Looks at nearly everything, nearly evenly.",
    mixed: "No single habit stands out on this text.",
  }[kind] || `Mostly attends to ${page.meanings[kind].split(":")[0]}: ${percent(shares[kind])} of its attention.`;
  const also = facts.also.map(([other, share]) => `${page.names[other]} ${percent(share)}`);
  return also.length ? `${lead} ${kind === "mixed" ? "Most of all" : "Also"}: ${also.join(", ")}.` : lead;
}

function showFacts(layer, head) {
  const facts = factsOf(layer, head);
  $("detail-title").textContent = `Layer ${layer}, head ${head}`;
  $("verdict").textContent = describe(facts);
  const [query, key, weight] = facts.strongest;
  const figures = [
    ["mostly", page.names[facts.kind]],
    ["entropy", `${facts.entropy.toFixed(2)} bits`, ` of ${page.most.toFixed(2)}`],
    ["tokens away", facts.distance.toFixed(1)],
    ["strongest pair", pairOf(query, key), ` ${weight.toFixed(3)}`],
  ];
  $("figures").replaceChildren(...figures.map(([name, value, small]) => {
    const group = make("div");
    const shown = make("dd", value);
    if (small) shown.append(make("small", small));
    group.append(make("dt", name), shown);
    return group;
  }));
  $("shares").tBodies[0].replaceChildren(...Object.entries(facts.shares).filter(([, share]) => share !== null).map(([kind, share]) => {
    const row = make("tr"), bar = make("td");
    bar.append(meter(share, page.even[kind]));
    row.append(make("th", page.names[kind], { scope: "row" }), make("td", percent(share)), bar);
    return row;
  }));
}

function setUpWords(choose) {
  const box = $("words");
  tokens.forEach((_, place) => {
    const button = make("button", tokenOf(place), { type: "button", "aria-pressed": "false", tabindex: place ? "-1" : "0" });
    words.push(button);
    box.append(button, " ");
  });
  box.addEventListener("click", (event) => {
    const at = words.indexOf(event.target.closest("button"));
    if (at >= 0) choose(at);
  });
  box.addEventListener("keydown", (event) => {
    const at = words.indexOf(event.target.closest("button"));
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: words.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (words[to]) {
      choose(to);
      words[to].focus();
    }
  });
}

// The text, shaded by what the chosen token attends to.
function showToken(query) {
  chosenToken = query;
  const { layer, head } = map;
  const given = new Map(topOf(layer, head, query, page.exact ? tokens.length : page.top));
  words.forEach((button, key) => {
    const weight = given.get(key) || 0;
    button.style.backgroundColor = weight ? colourOf(weight) : "";
    button.style.color = weight ? inkOn(weight) : "";
    button.setAttribute("aria-pressed", String(key === query));
    button.tabIndex = key === query ? 0 : -1;
  });
  const box = $("words"), own = words[query];
  if (own.offsetTop < box.scrollTop || own.offsetTop + own.offsetHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = own.offsetTop - box.clientHeight / 2;
  }
  const line = $("from");
  line.replaceChildren("From ", make("b", tokenOf(query)), ` (token ${query}) most of the attention goes to`);
  $("top").replaceChildren(...[...given].slice(0, 8).map(([key, weight]) => {
    const item = make("li"), name = make("span", tokenOf(key), { class: "token" });
    name.append(make("small", ` ${key}`));
    item.append(name, make("span", weight.toFixed(3), { class: "number" }), meter(weight));
    return item;
  }));
  if ($("every").open) fillEvery();
}

function table(columns, rows) {
  const made = make("table"), head = made.createTHead().insertRow();
  for (const [name, kind] of columns) head.append(make("th", name, { scope: "col", class: kind }));
  const body = made.createTBody();
  for (const cells of rows) {
    const row = body.insertRow();
    cells.forEach((cell, at) => row.append(make(at ? "td" : "th", cell, at ? { class: columns[at][1] } : { scope: "row", class: columns[0][1] })));
  }
  return made;
}

function fillPairs() {
  const most = Math.min(5, page.exact ? 5 : page.top);
  const rows = tokens.map((_, query) => {
    const top = topOf(map.layer, map.head, query, most).map(([key, weight]) => [tokenOf(key), ` ${weight.toFixed(3)}`]);
    return [[`${query} `, tokenOf(query)], ...top, ...Array(most - top.length).fill("")];
  });
  const columns = [["query", "token"], ...Array.from({ length: most }, (_, at) => [`${["1st", "2nd", "3rd", "4th", "5th"][at]} key`, "token"])];
  $("pairs").querySelector("div").replaceChildren(table(columns, rows));
}

function fillEvery() {
  const { layer, head } = map;
  const given = topOf(layer, head, chosenToken, tokens.length);
  const found = new Map(given);
  const keys = page.exact ? tokens.map((_, key) => key) : given.map(([key]) => key);
  const rows = keys.map((key) => [[`${key} `, tokenOf(key)], (found.get(key) || 0).toFixed(3)]);
  const made = table([["key", "token"], ["weight", "num"]], rows);
  made.createCaption().append("From ", tokenOf(chosenToken), ` (token ${chosenToken})${page.exact ? "" : `: the ${page.top} largest`}`);
  $("every").querySelector("div").replaceChildren(made);
}
