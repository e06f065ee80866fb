// The page of a run: several uses of attention, each over texts, patches of an image or frames of a sound.

const store = {};
const picture = page.image ? new Image() : null;
const ORANGE = [255, 120, 30]; // over a picture, in either theme

async function unpackAll() {
  for (const part of page.parts) store[part.key] = await unpack(`weights-${part.key}`);
  if (picture) {
    picture.src = page.image.href;
    await picture.decode();
  }
}

const partOf = (row) => page.parts[page.rows[row].part];
const layerOf = (row) => page.rows[row].layer;
const queriesOf = (row) => page.axes[partOf(row).queries];
const keysOf = (row) => page.axes[partOf(row).keys];
const shapeOf = (row) => [queriesOf(row).labels.length, keysOf(row).labels.length];
const onItself = (row) => partOf(row).queries === partOf(row).keys;

function matrixOf(row, head) {
  const part = partOf(row), [down, across] = shapeOf(row);
  const start = (layerOf(row) * (part.heads + 1) + head) * down * across;
  return store[part.key].subarray(start, start + down * across);
}

const factsOf = (row, head) => partOf(row).facts[layerOf(row)][head];
const isMean = (row, head) => head === partOf(row).heads;
const titleOf = (row, head) => {
  const part = partOf(row), which = isMean(row, head) ? (part.heads ? ", mean over the heads" : "") : `, head ${head}`;
  return `${part.title}, layer ${layerOf(row)}${which}`;
};
const kindName = (kind) => partOf(map.layer).names[kind];
const kindMeaning = (kind) => partOf(map.layer).meanings[kind];
const evenOf = (facts, kind) => facts.even[kind];

function topOf(row, head, query, most) {
  const across = shapeOf(row)[1];
  return topOfRow(matrixOf(row, head).subarray(query * across, (query + 1) * across), most);
}

const firstOf = (cell) => cell, cellOf = (query) => query;
const queryLabel = (cell) => queriesOf(map.layer).labels[cell];
const keyLabel = (cell) => keysOf(map.layer).labels[cell];
const queryToken = (cell) => make("bdi", queryLabel(cell));
const keyToken = (cell) => make("bdi", keyLabel(cell));
const queryParts = (cell) => [queryToken(cell)], keyParts = (cell) => [keyToken(cell)];
const queryName = queryParts, keyName = keyParts;
const queryCount = () => shapeOf(map.layer)[0];
const mostKeys = () => shapeOf(map.layer)[1];
const everyKey = () => true;
const keyList = () => Array.from({ length: mostKeys() }, (_, key) => key);
const onAverage = () => (queriesOf(map.layer).whole && keysOf(map.layer).whole ? "" : " on average");

function figuresOf(facts) {
  const [query, key, weight] = facts.strongest;
  const pair = ["strongest pair", [queryToken(query), " → ", keyToken(key)], ` ${weight.toFixed(3)}`];
  if (facts.kind === "mean") return [pair];
  const away = facts.distance === null ? [] : [[`${keysOf(map.layer).many} away`, facts.distance.toFixed(1)]];
  return [
    ["mostly", kindName(facts.kind)],
    ["entropy", `${facts.entropy.toFixed(2)} bits`, ` of ${facts.most.toFixed(2)}`],
    ...away,
    ["largest weight", facts.largest.toFixed(3), " on average"],
    pair,
  ];
}

// A small map; for an image, the picture with what the chosen token gives to its patches.
function paintSmall(canvas, row, head, size) {
  if (keysOf(row).kind !== "patches") {
    paint(canvas, matrixOf(row, head), shapeOf(row), size, size);
    return;
  }
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d"), across = shapeOf(row)[1];
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0, size, size);
  const weights = matrixOf(row, head).subarray(chosenToken * across, (chosenToken + 1) * across);
  const [down, right] = keysOf(row).grid;
  for (let place = 1; place < across && keysOf(row).whole; place++) {
    const y = Math.floor((place - 1) / right), x = (place - 1) % right;
    context.fillStyle = `rgba(${ORANGE}, ${over(weights[place] / 1000)})`;
    context.fillRect((x * size) / right, (y * size) / down, Math.ceil(size / right), Math.ceil(size / down));
  }
}
const over = (weight) => (0.92 * Math.sqrt(weight)).toFixed(3);

// The input: words to choose a query from, and what it looks at as words, patches or frames.
const words = [], keyWords = [];
let shownPart = null;

function setUpKeys(choose) {
  listenToWords($("words"), words, choose);
  if ($("image")) {
    $("image").addEventListener("click", (event) => {
      const place = event.target.dataset.place;
      if (place !== undefined) choose(+place);
    });
  }
  if ($("sound")) {
    $("sound").addEventListener("click", (event) => {
      const axis = queriesOf(map.layer), frame = $("sound").getBoundingClientRect();
      if (axis.kind !== "frames") return;
      choose(Math.min(axis.labels.length - 1, Math.floor(((event.clientX - frame.left) / frame.width) * axis.labels.length)));
    });
  }
}

const HELP = {
  text: "Choose a token: the stronger the colour, the more it attends to what stands behind it.",
  patches: "Choose a row of the map, or a patch of the picture: the stronger the colour on a patch, the more the chosen one attends to it.",
  frames: "Choose a row of the map, or a place in the sound: the darker the strip below a frame, the more the chosen one attends to it.",
};

// Called whenever a head is chosen; gives the query that is shown of it.
function opened(row, head, query) {
  const part = partOf(row), queries = queriesOf(row), keys = keysOf(row);
  page.unit = queries.unit;
  $("more").hidden = isMean(row, head);
  if (part === shownPart) return Math.min(query, queries.labels.length - 1);
  shownPart = part;
  $("words-help").textContent = HELP[queries.kind];
  $("words").hidden = queries.kind !== "text";
  fillWords($("words"), words, queries.kind === "text" ? queries.labels.map((_, place) => make("bdi", queries.labels[place])) : []);
  const other = !onItself(row) && keys.kind === "text";
  keyWords.length = 0;
  if (other) for (const label of keys.labels) keyWords.push(make("span", make("bdi", label)));
  $("key-words").replaceChildren(...keyWords.flatMap((word) => [word, " "]));
  $("key-words").hidden = !other;
  $("keys-of").hidden = keys.kind === "text" && !other;
  if ($("image")) $("image").hidden = keys.kind !== "patches";
  if ($("sound")) $("sound").hidden = keys.kind !== "frames";
  const [first, key] = startingPair(row, head);
  map.row = first;
  map.column = key;
  return first;
}

function startingPair(row, head) {
  return page.row === null ? factsOf(row, head).strongest : [page.row, factsOf(row, head).of_row];
}

function showKeys(given, query) {
  const keys = keysOf(map.layer);
  if (words.length) pressWord($("words"), words, query);
  if (keys.kind === "text") shadeWords(onItself(map.layer) ? words : keyWords, given);
  if (keys.kind === "patches") {
    showPatches(given, query);
    paintGrid();
  }
  if (keys.kind === "frames") showFrames(given, query);
}

function showPatches(given, query) {
  const { width, height, href } = page.image, [down, right] = keysOf(map.layer).grid;
  const plain = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  plain.append(makeSvg("image", { class: "pixels", href, width, height }));
  const marked = plain.cloneNode(true);
  marked.setAttribute("class", "over");
  const box = (place) => {
    const y = Math.floor((place - 1) / right), x = (place - 1) % right;
    return { x: (x * width) / right, y: (y * height) / down, width: width / right, height: height / down };
  };
  for (let place = 1; place <= down * right && keysOf(map.layer).whole; place++) {
    marked.append(makeSvg("rect", { class: "patch", ...box(place), "fill-opacity": over(given.get(place) || 0), "data-place": place }));
  }
  if (query > 0) marked.append(makeSvg("rect", { class: "query", ...box(query) }));
  $("image").replaceChildren(plain, marked);
}

// Log-mel, CTC's symbols where they begin, a strip of weights if there are any, and a time axis.
function drawSound(box, given, query) {
  const width = Math.max(200, box.clientWidth), axis = page.axes[page.sound.frames], count = axis.labels.length;
  const svg = makeSvg("svg", { width, height: given ? 158 : 132, "aria-hidden": "true" });
  svg.append(makeSvg("image", { class: "mel", href: page.sound.href, width, height: 84, preserveAspectRatio: "none" }));
  let last = -99;
  for (const [frame, symbol] of page.sound.symbols) {
    const x = ((frame + 0.5) * width) / page.sound.count;
    svg.append(makeSvg("line", { x1: x, x2: x, y1: 84, y2: 90 }));
    if (x - last < 10) continue;
    last = x;
    const text = makeSvg("text", { x, y: 104, "text-anchor": x < 10 ? "start" : x > width - 10 ? "end" : "middle" });
    text.textContent = symbol;
    svg.append(text);
  }
  const below = given ? 136 : 110;
  if (given) {
    for (let frame = 0; frame < count; frame++) {
      svg.append(makeSvg("rect", { x: (frame * width) / count, y: 112, width: width / count + 0.5, height: 22, fill: colourOf(given.get(frame) || 0) }));
    }
    if (queriesOf(map.layer).kind === "frames") {
      const x = ((query + 0.5) * width) / count;
      svg.append(makeSvg("line", { x1: x, x2: x, y1: 0, y2: 136 }));
    }
  }
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60].find((size) => (size * width) / page.sound.seconds >= 56) || 120;
  for (let at = 0; at * step < page.sound.seconds; at++) {
    const x = (at * step * width) / page.sound.seconds;
    if (x > width - 34) break;
    const text = makeSvg("text", { class: "tick", x, y: below + 16, "text-anchor": at ? "middle" : "start" });
    text.textContent = `${+(at * step).toFixed(1)} s`;
    svg.append(makeSvg("rect", { class: "tick", x, y: below, width: 1, height: 4 }), text);
  }
  box.replaceChildren(svg);
}

function showFrames(given, query) {
  drawSound($("sound"), given, query);
}

// Beside the colours of the heads, what `repaint` paints.
function repaintInput() {
  if ($("spoken")) drawSound($("spoken"), null, 0);
}

function startingPlace() {
  const found = /^#(\w+)\.(\d+)\.(\d+|mean)$/.exec(location.hash);
  const row = found ? page.rows.findIndex((one) => page.parts[one.part].key === found[1] && one.layer === +found[2]) : -1;
  if (row < 0) return page.first;
  const head = found[3] === "mean" ? partOf(row).heads : +found[3];
  return head <= partOf(row).heads ? [row, head] : page.first;
}
const addressOf = (row, head) => `${partOf(row).key}.${layerOf(row)}.${isMean(row, head) ? "mean" : head}`;
