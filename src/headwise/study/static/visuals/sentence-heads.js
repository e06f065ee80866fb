// The heads of a real sentence: all layers and heads at once for one token, then one head in full.

import { drawing, html, label, NO_STOP, plainKey, rectangle, round, stage, step, svg } from "./common.js";
import { columnLabels, heat, rowLabels, shaded } from "./heat.js";
import { fixed, percent } from "./words.js";

const KINDS = { first: "[CLS]", separator: "[SEP]", previous: "the token before", next: "the token after", itself: "the token itself" };
const root2 = Math.sqrt; // shades by the square root of the weight: small ones stay visible

export function compute(data, inputs) {
  const n = data.tokens.length;
  const token = Math.min(Number(inputs.token), n - 1);
  const row = weightsOf(data, Number(inputs.layer), Number(inputs.head), token);
  const order = row.map((_, key) => key).sort((a, b) => row[b] - row[a] || a - b).slice(0, 5);
  return {
    token, row, order,
    entropy: row.reduce((sum, weight) => (weight > 0 ? sum - weight * Math.log2(weight) : sum), 0),
    distance: row.reduce((sum, weight, key) => sum + weight * Math.abs(key - token), 0),
    most: Math.log2(n),
  };
}

// The page's own weights come packed, see headwise.study.visuals.sentence_heads; those of a server as they are.
const LETTERS = Array.from({ length: 94 }, (_, place) => String.fromCharCode(33 + place)).filter((letter) => !'"\\<&'.includes(letter));
const VALUES = new Map(LETTERS.map((letter, place) => [letter, place]));
const ONE = 40, TWO = 84, unpacked = new Map();

function numbersOf({ weights }) {
  if (typeof weights !== "string") return weights;
  if (!unpacked.has(weights)) {
    const base = LETTERS.length, numbers = [];
    const next = (at) => VALUES.get(weights[at]);
    for (let at = 0; at < weights.length;) {
      const first = next(at++);
      if (first < ONE) numbers.push(first);
      else if (first < TWO) numbers.push(ONE + (first - ONE) * base + next(at++));
      else numbers.push(ONE + ((TWO - ONE) + (first - TWO) * base + next(at++)) * base + next(at++));
    }
    unpacked.set(weights, numbers);
  }
  return unpacked.get(weights);
}

// A row of one head's matrix, [keys].
function weightsOf(data, layer, head, token) {
  const n = data.tokens.length, first = ((layer * data.heads + head) * n + token) * n;
  return numbersOf(data).slice(first, first + n).map((weight) => weight / data.unit);
}

// The sentence: press a word to ask where it looks. One stop of Tab; arrow keys walk along it.
function sentence(data, result, stage) {
  const line = html("p", { class: "v-sentence", role: "toolbar", "aria-label": "Tokens, counted from 0: choose the one that looks" });
  const stop = Math.min(stage.spots.sentence ?? result.token, data.tokens.length - 1);
  data.tokens.forEach((token, place) => {
    const button = html("button", {
      type: "button", tabindex: place === stop ? "0" : "-1", "aria-pressed": String(place === result.token), "data-key": `token:${place}`,
      "aria-label": `${token}, token ${place}: weight ${fixed(result.row[place], 3)}`,
    }, token);
    shaded(button, root2(result.row[place]));
    if (root2(result.row[place]) >= 0.6) button.classList.add("v-light");
    button.addEventListener("click", () => stage.set("token", place));
    line.append(button);
  });
  line.addEventListener("keydown", (event) => {
    const all = [...line.children];
    const to = plainKey(event) && !/^(Arrow(Up|Down)|Page)/.test(event.key) && step(event.key, [0, all.indexOf(event.target)], [1, all.length]);
    if (!to) return;
    event.preventDefault();
    all[to[1]].focus();
  });
  line.addEventListener("focusin", ({ target }) => {
    [...line.children].forEach((button, place) => {
      button.tabIndex = button === target ? 0 : -1;
      if (button === target) stage.spots.sentence = place;
    });
  });
  return line;
}

// A strip for every head: where the chosen token looks in it.
function overview(data, result, inputs, stage) {
  const across = stage.width >= 760 ? data.heads : stage.width >= 420 ? data.heads / 2 : data.heads / 3;
  const blocks = Math.ceil(data.heads / across), n = data.tokens.length;
  const left = 54, wide = (stage.width - left - 2) / across, tall = 18, gap = 6;
  const lines = [];
  for (let layer = 0; layer < data.layers; layer++) {
    for (let block = 0; block < blocks; block++) lines.push([layer, block]);
  }
  const place = (row, column) => [lines[row][0], lines[row][1] * across + column];
  const say = (row, column) => {
    const [layer, head] = place(row, column), weights = weightsOf(data, layer, head, result.token);
    const best = weights.indexOf(Math.max(...weights)), facts = data.facts[layer][head];
    return `layer ${layer}, head ${head}: “${data.tokens[result.token]}” looks most at “${data.tokens[best]}” (${percent(weights[best])}); over the sentence ${kindOf(facts)}`;
  };
  const top = 24, cells = [], y = (row) => top + row * (tall + gap) + lines[row][0] * (blocks > 1 ? 8 : 0);
  const grid = svg("g", { role: "grid", "aria-label": `Where “${data.tokens[result.token]}” looks: rows are layers, columns are heads, both counted from 0`, ...NO_STOP });
  lines.forEach(([layer], row) => {
    const line = svg("g", { role: "row" });
    cells.push([]);
    for (let column = 0; column < across; column++) {
      const head = place(row, column)[1], chosen = layer === Number(inputs.layer) && head === Number(inputs.head);
      const x = left + column * wide, size = (wide - 6) / n;
      const cell = svg("g", { role: "gridcell", "aria-label": say(row, column), "aria-selected": String(chosen), tabindex: chosen ? "0" : "-1", "data-key": `heads:${layer}:${head}`, class: "v-strip" },
        rectangle(x, y(row), wide - 6, tall, { class: "v-back" }),
        ...weightsOf(data, layer, head, result.token).map((weight, key) => shaded(rectangle(x + key * size, y(row), size + 0.3, tall), root2(weight))),
        rectangle(x - 2, y(row) - 2, wide - 2, tall + 4, { class: chosen ? "v-picked" : "v-around" }));
      line.append(cell);
      cells[row].push(cell);
    }
    grid.append(line);
  });
  walk(grid, cells, stage, say, (row, column) => {
    const [layer, head] = place(row, column);
    stage.set("layer", layer);
    stage.set("head", head);
  });
  const axes = svg("g", { "aria-hidden": "true" },
    ...(blocks === 1 ? Array.from({ length: across }, (_, head) => label(left + head * wide + (wide - 6) / 2, 14, String(head), { class: "v-text v-soft v-center" })) : [label(left, 14, `heads 0 to ${data.heads - 1}, ${across} in a line`, { class: "v-text v-soft" })]),
    ...(blocks === 1 ? [label(left - 8, 14, "head", { class: "v-text v-soft v-end" })] : []),
    ...lines.flatMap(([layer, block], row) => (block ? [] : [label(left - 8, y(row) + tall / 2, `layer ${layer}`, { class: "v-text v-soft v-end v-middle" })])));
  return drawing(stage.width, y(lines.length - 1) + tall + 6, { class: "v-plot" }, axes, grid);
}

function walk(grid, cells, stage, say, pick) {
  const placeOf = (cell) => {
    const row = cells.findIndex((line) => line.includes(cell));
    return [row, cells[row].indexOf(cell)];
  };
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[data-key]");
    const to = cell && plainKey(event) && step(event.key, placeOf(cell), [cells.length, cells[0].length]);
    if (!to) return;
    event.preventDefault();
    cells[to[0]][to[1]].focus();
    pick(...to);
  });
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("[data-key]");
    if (!cell) return;
    cell.focus({ preventScroll: true });
    pick(...placeOf(cell));
  });
  for (const name of ["pointerover", "focusin"]) {
    grid.addEventListener(name, (event) => {
      const cell = event.target.closest("[data-key]");
      if (cell) stage.peek(say(...placeOf(cell)));
    });
  }
}

const kindOf = ({ kind, shares }) =>
  kind in KINDS ? `gives ${percent(shares[kind])} to ${KINDS[kind]}` : kind === "broad" ? "looks nearly everywhere" : "has no single aim";

// The whole matrix of the chosen head.
function matrix(data, result, inputs, stage) {
  const n = data.tokens.length, layer = Number(inputs.layer), head = Number(inputs.head);
  const left = 74, top = 74, cell = round(Math.min(32, (stage.width - left - 6) / n));
  const all = data.tokens.map((_, token) => weightsOf(data, layer, head, token));
  const grid = heat(stage, {
    id: "matrix", name: `Layer ${layer}, head ${head}: rows look at columns`, rows: n, columns: n, x: left, y: top, wide: cell, tall: cell,
    shade: (row, column) => root2(all[row][column]),
    say: (row, column) => `“${data.tokens[row]}” (${row}) to “${data.tokens[column]}” (${column}): ${fixed(all[row][column], 3)}`,
    pick: (row) => stage.set("token", row), first: [result.token, 0],
  });
  const chosen = rectangle(left, top + result.token * cell, n * cell, cell, { class: "v-picked", "aria-hidden": "true" });
  const axes = svg("g", { "aria-hidden": "true" },
    rowLabels(data.tokens, { x: left - 6, y: top, tall: cell, size: 11 }),
    columnLabels(data.tokens, { x: left, y: top - 6, wide: cell, size: 11, turned: true }));
  return drawing(stage.width, top + n * cell + 6, { class: "v-plot" }, axes, grid, chosen);
}

function figures(data, result, inputs) {
  const { entropy, distance, shares } = data.facts[Number(inputs.layer)][Number(inputs.head)];
  const pairs = [
    ["entropy", `${fixed(entropy, 2)} of ${fixed(result.most, 2)} bits`],
    ["mean distance", `${fixed(distance, 1)} tokens`],
    ...Object.entries(KINDS).map(([kind, name]) => [`to ${name}`, percent(shares[kind])]),
  ];
  return html("dl", { class: "v-figures" }, ...pairs.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value))));
}

function view(result, inputs, stage) {
  const data = stage.held;
  const layer = Number(inputs.layer), head = Number(inputs.head), token = data.tokens[result.token], best = result.order[0];
  const facts = data.facts[layer][head];
  return {
    draw: [sentence(data, result, stage), overview(data, result, inputs, stage),
      html("p", { class: "v-title" }, `Layer ${layer}, head ${head} (counted from 0)`), figures(data, result, inputs), matrix(data, result, inputs, stage)],
    outputs: { token: `${result.token}: ${token}` },
    limits: { token: data.tokens.length - 1 },
    table: {
      caption: `Layer ${layer}, head ${head} (counted from 0): where “${token}” looks`,
      columns: ["key", "weight"],
      rows: data.tokens.map((key, place) => [`${key} (${place})`, fixed(result.row[place], 4)]),
    },
    words: `In layer ${layer}, head ${head} (both counted from 0), “${token}” looks most at “${data.tokens[best]}” (${percent(result.row[best])}). `
      + `Over the sentence this head ${kindOf(facts)}; its entropy is ${fixed(facts.entropy, 2)} of ${fixed(result.most, 2)} bits.`,
  };
}

const MOST = 48; // tokens that the server reads, as in headwise.study.visuals.sentence_heads

// A sentence of one's own, where a server with the model answers. Elsewhere its field is gone.
function live(stage) {
  const control = stage.root.querySelector('form [name="text"]');
  if (!control) return [];
  const field = control.closest(".control") || control.parentElement;
  field.hidden = true;
  if (document.documentElement.dataset.mode !== "server") return [];
  const told = html("p", { class: "v-note", role: "status" });
  const limit = html("p", { class: "control-help v-limit" }, `Up to ${MOST} tokens (words, parts of words and marks).`);
  control.after(limit);
  const button = html("button", { type: "button", class: "v-button", hidden: true }, "Look at this sentence");
  const ask = async () => {
    const text = control.value.trim();
    if (!text) {
      told.textContent = `Write a sentence first: up to ${MOST} tokens, which are words, parts of words and marks.`;
      control.setAttribute("aria-invalid", "true");
      control.focus();
      return;
    }
    control.removeAttribute("aria-invalid");
    button.disabled = true;
    told.textContent = "Reading …";
    try {
      const found = await answerOf(await fetch("/api/heads", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }),
      }));
      stage.held = { ...stage.data, ...found };
      told.textContent = `${found.tokens.length} tokens read.`;
      stage.change();
    } catch (error) {
      told.textContent = `The sentence shown stays: ${error.message}`;
    } finally {
      button.disabled = false;
    }
  };
  button.addEventListener("click", ask);
  control.addEventListener("keydown", (event) => { if (event.key === "Enter") ask(); });
  offer(field, button, told);
  return [html("div", { class: "v-live" }, button, told)];
}

// Show field and button where the server can read, else say why it can't.
async function offer(field, button, told) {
  try {
    const { available, why } = await answerOf(await fetch("/api/heads"));
    field.hidden = button.hidden = !available;
    if (!available) told.textContent = `A sentence of your own can’t be read: ${why}.`;
  } catch (error) {
    told.textContent = `A sentence of your own can’t be read: ${error.message}`;
  }
}

async function answerOf(response) {
  const found = await response.json();
  if (!response.ok) throw new Error(found.message || `the server answered ${response.status}`);
  return found;
}

export function mount(root, data) {
  let own; // the stage, which holds the sentence that is shown
  return stage(root, data, {
    compute: (_, inputs) => compute(own.held, inputs),
    view,
    extra: (made) => {
      own = made;
      own.held = data;
      return live(made);
    },
  });
}
