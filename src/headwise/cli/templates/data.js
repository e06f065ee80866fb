// The report on a text: one sequence that attends to itself.

const tokens = page.tokens;
const side = page.exact ? tokens.length : page.cells; // rows and columns of a map
const store = {};

async function unpackAll() {
  store.weights = await unpack("weights");
  if (!page.exact) {
    store.topKeys = await unpack("top-keys");
    store.topWeights = await unpack("top-weights");
  }
}

const shapeOf = () => [side, side];
const factsOf = (layer, head) => page.facts[layer * page.heads + head];
const titleOf = (layer, head) => `Layer ${layer}, head ${head}`;
const kindName = (kind) => page.names[kind];
const kindMeaning = (kind) => page.meanings[kind];
const evenOf = (facts, kind) => page.even[kind];

// The matrix of one head: thousandths, row by row.
function matrixOf(layer, head) {
  const start = (layer * page.heads + head) * side * side;
  return store.weights.subarray(start, start + side * side);
}

// The keys that a token attends to most: [[key, weight], ...], heaviest first, none of weight 0.000.
function topOf(layer, head, query, most) {
  if (page.exact) return topOfRow(matrixOf(layer, head).subarray(query * side, (query + 1) * side), most);
  const found = [];
  const start = ((layer * page.heads + head) * tokens.length + query) * page.top;
  for (let i = start; i < start + Math.min(page.top, most); i++) {
    if (store.topWeights[i] > 0) found.push([store.topKeys[i], store.topWeights[i] / 1000]);
  }
  return found;
}

function paintSmall(canvas, layer, head, size) {
  paint(canvas, matrixOf(layer, head), shapeOf(layer), size, size);
}

// A row or column of the map: one token, or the tokens of a cell.
const firstOf = (cell) => Math.ceil((cell * tokens.length) / side);
const lastOf = (cell) => firstOf(cell + 1) - 1;
const cellOf = (token) => Math.floor((token * side) / tokens.length);
// Tokens stand in elements of their own direction: what stands around one that runs from right to left
// keeps its place.
const tokenOf = (place) => make("bdi", tokens[place]);
const queryToken = tokenOf, keyToken = tokenOf;
const queryCount = () => tokens.length;
function nameOf(cell) {
  const first = firstOf(cell), last = lastOf(cell);
  return first === last ? [tokenOf(first)] : [tokenOf(first), " … ", tokenOf(last), ` (${first}–${last})`];
}
const queryName = nameOf, keyName = nameOf;
const labelOf = (cell) => (page.exact ? tokens[cell] : `${firstOf(cell)} ${tokens[firstOf(cell)]}`);
const queryLabel = labelOf, keyLabel = labelOf;
const labelPartsOf = (cell) => (page.exact ? [tokenOf(cell)] : [`${firstOf(cell)} `, tokenOf(firstOf(cell))]);
const queryParts = labelPartsOf, keyParts = labelPartsOf;
const onAverage = () => (page.exact ? "" : " on average");
const mostKeys = () => (page.exact ? tokens.length : page.top);
const everyKey = () => page.exact;
const keyList = (given) => (page.exact ? tokens.map((_, key) => key) : given.map(([key]) => key));

function figuresOf(facts) {
  const [query, key, weight] = facts.strongest;
  return [
    ["mostly", page.names[facts.kind]],
    ["entropy", `${facts.entropy.toFixed(2)} bits`, ` of ${page.most.toFixed(2)}`],
    ["tokens away", facts.distance.toFixed(1)],
    ["strongest pair", [tokenOf(query), " → ", tokenOf(key)], ` ${weight.toFixed(3)}`],
  ];
}

const words = [];
function setUpKeys(choose) {
  fillWords($("words"), words, tokens.map((_, place) => tokenOf(place)));
  listenToWords($("words"), words, choose);
}
const opened = (layer, head, query) => query;
const startingPair = (layer, head) => factsOf(layer, head).strongest;
function showKeys(given, query) {
  shadeWords(words, given);
  pressWord($("words"), words, query);
}

function startingPlace() {
  const found = /^#(\d+)\.(\d+)$/.exec(location.hash);
  if (found && +found[1] < page.layers && +found[2] < page.heads) return [+found[1], +found[2]];
  return page.first;
}
const addressOf = (layer, head) => `${layer}.${head}`;
function repaintInput() {}
