// What stands around the large map: words, numbers, the text, and the tables behind the picture.

let chosenToken = 0;

function meter(share, even) {
  const svg = makeSvg("svg", { class: "meter", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  const bar = (kind, x, width) => {
    svg.append(makeSvg("rect", { class: kind, x, y: kind === "even" ? -1 : 1, width, height: kind === "even" ? 12 : 8 }));
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
    mean: facts.says,
    single: "Looks at one key at a time, nearly alone.",
    mixed: `No single habit stands out on this ${page.what || "text"}.`,
  }[kind] || `Mostly attends to ${kindMeaning(kind).split(":")[0]}: ${percent(shares[kind])} of its attention.`;
  const also = facts.also.map(([other, share]) => `${kindName(other)} ${percent(share)}`);
  return also.length ? `${lead} ${kind === "mixed" ? "Most of all" : "Also"}: ${also.join(", ")}.` : lead;
}

function showFacts(layer, head) {
  const facts = factsOf(layer, head);
  $("detail-title").textContent = titleOf(layer, head);
  $("verdict").textContent = describe(facts);
  $("figures").replaceChildren(...figuresOf(facts).map(([name, value, small]) => {
    const group = make("div");
    const shown = make("dd", value);
    if (small) shown.append(make("small", small));
    group.append(make("dt", name), shown);
    return group;
  }));
  $("shares").tBodies[0].replaceChildren(...Object.entries(facts.shares).filter(([, share]) => share !== null).map(([kind, share]) => {
    const row = make("tr"), bar = make("td");
    bar.append(meter(share, evenOf(facts, kind)));
    row.append(make("th", kindName(kind), { scope: "row" }), make("td", percent(share)), bar);
    return row;
  }));
}

// A row of a matrix as [[key, weight], ...], heaviest first, none of weight 0.000.
function topOfRow(row, most) {
  const found = [];
  row.forEach((weight, key) => { if (weight > 0) found.push([key, weight / 1000]); });
  found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return found.slice(0, most);
}

// Words to choose from: a button each, one of which the tab key reaches.
function fillWords(box, buttons, contents) {
  buttons.length = 0;
  box.replaceChildren();
  contents.forEach((content, place) => {
    const button = make("button", content, { type: "button", "aria-pressed": "false", tabindex: place ? "-1" : "0" });
    buttons.push(button);
    box.append(button, " ");
  });
}

function listenToWords(box, buttons, choose) {
  box.addEventListener("click", (event) => {
    const at = buttons.indexOf(event.target.closest("button"));
    if (at >= 0) choose(at);
  });
  box.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(event.target.closest("button"));
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (buttons[to]) {
      choose(to);
      buttons[to].focus();
    }
  });
}

// Words shaded by what they are given: a Map from places to weights.
function shadeWords(elements, given) {
  elements.forEach((element, key) => {
    const weight = given.get(key) || 0;
    element.style.backgroundColor = weight ? colourOf(weight) : "";
    element.style.color = weight ? inkOn(weight) : "";
  });
}

function pressWord(box, buttons, chosen) {
  buttons.forEach((button, place) => {
    button.setAttribute("aria-pressed", String(place === chosen));
    button.tabIndex = place === chosen ? 0 : -1;
  });
  const own = buttons[chosen];
  if (own.offsetTop < box.scrollTop || own.offsetTop + own.offsetHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = own.offsetTop - box.clientHeight / 2;
  }
}

// What the chosen token attends to.
function showToken(query) {
  chosenToken = query;
  const { layer, head } = map;
  const given = new Map(topOf(layer, head, query, mostKeys()));
  showKeys(given, query);
  const line = $("from");
  line.replaceChildren("From ", make("b", queryToken(query)), ` (${page.unit || "token"} ${query}) most of the attention goes to`);
  $("top").replaceChildren(...[...given].slice(0, 8).map(([key, weight]) => {
    const item = make("li"), name = make("span", keyToken(key), { class: "token" });
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
  const most = Math.min(5, mostKeys());
  const lines = Array.from({ length: queryCount() }, (_, query) => {
    const top = topOf(map.layer, map.head, query, most).map(([key, weight]) => [keyToken(key), ` ${weight.toFixed(3)}`]);
    return [[`${query} `, queryToken(query)], ...top, ...Array(most - top.length).fill("")];
  });
  const heading = [["query", "token"], ...Array.from({ length: most }, (_, at) => [`${["1st", "2nd", "3rd", "4th", "5th"][at]} key`, "token"])];
  $("pairs").querySelector("div").replaceChildren(table(heading, lines));
}

function fillEvery() {
  const given = topOf(map.layer, map.head, chosenToken, mostKeys());
  const found = new Map(given);
  const lines = keyList(given).map((key) => [[`${key} `, keyToken(key)], (found.get(key) || 0).toFixed(3)]);
  const made = table([["key", "token"], ["weight", "num"]], lines);
  made.createCaption().append("From ", queryToken(chosenToken), ` (${page.unit || "token"} ${chosenToken})${everyKey() ? "" : `: the ${mostKeys()} largest`}`);
  $("every").querySelector("div").replaceChildren(made);
}
