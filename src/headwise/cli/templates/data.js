"use strict";
// What the page carries: tokens and facts as JSON, weights as compressed thousandths.

const $ = (id) => document.getElementById(id);
const page = JSON.parse($("data").textContent);
const tokens = page.tokens;
const side = page.exact ? tokens.length : page.cells; // rows and columns of a map
const store = {};

async function unpack(id) {
  const packed = Uint8Array.from(atob($(id).textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const half = raw.length / 2; // high bytes, then low bytes
  const numbers = new Uint16Array(half);
  for (let i = 0; i < half; i++) numbers[i] = raw[i] * 256 + raw[half + i];
  return numbers;
}

async function unpackAll() {
  store.weights = await unpack("weights");
  if (!page.exact) {
    store.topKeys = await unpack("top-keys");
    store.topWeights = await unpack("top-weights");
  }
}

const factsOf = (layer, head) => page.facts[layer * page.heads + head];

// The matrix of one head: thousandths, row by row.
function matrixOf(layer, head) {
  const start = (layer * page.heads + head) * side * side;
  return store.weights.subarray(start, start + side * side);
}

// The keys that a token attends to most: [[key, weight], ...], heaviest first, none of weight 0.000.
function topOf(layer, head, query, most) {
  const found = [];
  if (page.exact) {
    const row = matrixOf(layer, head).subarray(query * side, (query + 1) * side);
    row.forEach((weight, key) => { if (weight > 0) found.push([key, weight / 1000]); });
    found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    return found.slice(0, most);
  }
  const start = ((layer * page.heads + head) * tokens.length + query) * page.top;
  for (let i = start; i < start + Math.min(page.top, most); i++) {
    if (store.topWeights[i] > 0) found.push([store.topKeys[i], store.topWeights[i] / 1000]);
  }
  return found;
}

// A row or column of the map: one token, or the tokens of a cell.
const firstOf = (cell) => Math.ceil((cell * tokens.length) / side);
const lastOf = (cell) => firstOf(cell + 1) - 1;
const cellOf = (token) => Math.floor((token * side) / tokens.length);
// Tokens stand in elements of their own direction: what stands around one that runs from right to left
// keeps its place.
const tokenOf = (place) => make("bdi", tokens[place]);
const pairOf = (query, key) => [tokenOf(query), " → ", tokenOf(key)];
function nameOf(cell) {
  const first = firstOf(cell), last = lastOf(cell);
  return first === last ? [tokenOf(first)] : [tokenOf(first), " … ", tokenOf(last), ` (${first}–${last})`];
}

const percent = (share) => (share < 0.0995 ? (share * 100).toFixed(1) : Math.round(share * 100)) + "%";

function make(tag, text, attributes) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.append(...[text].flat());
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  return element;
}
