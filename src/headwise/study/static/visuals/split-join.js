// One token's numbers through a layer: projected, cut into heads, joined, projected again.

import { drawing, label, pieces, rectangle, stage, svg } from "./common.js";
import { count, fixed } from "./words.js";

export function compute(data, inputs) {
  const { n, d_model, heads } = inputs;
  const width = inputs.free ? inputs.width : Math.max(1, Math.floor(d_model / heads));
  const inner = heads * width, pairs = heads * n * n;
  const projection = (name, into) => ({
    name: `${name} projection`, shape: [n, into], parameters: d_model * inner, flops: 2 * n * d_model * inner,
  });
  const plain = (name, shape, flops = 0) => ({ name, shape, parameters: 0, flops });
  const steps = [
    plain("input", [n, d_model]),
    ...["query", "key", "value"].map((name) => projection(name, inner)),
    ...["queries", "keys", "values"].map((name) => plain(`${name} per head`, [heads, n, width])),
    plain("scores", [heads, n, n], 2 * width * pairs),
    plain("weights", [heads, n, n], data.softmax * pairs),
    plain("heads' outputs", [heads, n, width], 2 * width * pairs),
    plain("concatenation", [n, inner]),
    projection("output", d_model),
  ];
  const sum = (name) => steps.reduce((total, step) => total + step[name], 0);
  const flops = sum("flops"), softmax = data.softmax * pairs;
  return { width, steps, parameters: sum("parameters"), flops, products: flops - softmax, softmax };
}

// A row of numbers, cut into pieces.
function strip(x, y, pieces, size, tall) {
  return svg("g", {}, ...Array.from({ length: pieces }, (_, piece) =>
    rectangle(x + piece * size, y, Math.max(0.6, size - (size > 5 ? 1 : 0.25)), tall, { class: `v-bar v-a${piece % 2 ? " v-pale" : ""}` })));
}

function flow(result, inputs, width) {
  const { n, d_model, heads } = inputs;
  const inner = heads * result.width;
  const tall = 22, room = 62, x = 2, wide = width >= 480;
  const scale = (width - 4) / Math.max(d_model, inner);
  const whole = d_model * scale, joined = inner * scale, head = result.width * scale;
  const lines = [
    [`one token’s vector: ${count(d_model)} numbers`, (y) => rectangle(x, y, whole, tall, { class: "v-bar v-quiet-fill" })],
    [`1 project: ${heads} × ${result.width} = ${count(inner)} numbers of Q${wide ? ", and as many of K and V" : ""}`, (y) => rectangle(x, y, joined, tall, { class: "v-bar v-a" })],
    [`2 split: ${heads} ${heads === 1 ? "head" : "heads"} of ${result.width}`, (y) => strip(x, y, heads, head, tall)],
    [`3 attend: ${wide ? `in each head ${n} × ${n} weights, then ${result.width} numbers again` : `${n} × ${n} weights in each head`}`, (y) => attend(x, y, heads, head, tall)],
    [`4 join: ${count(inner)} numbers side by side`, (y) => strip(x, y, heads, head, tall)],
    [`and project: times W_O, ${count(d_model)} numbers`, (y) => rectangle(x, y, whole, tall, { class: "v-bar v-quiet-fill" })],
  ];
  const parts = lines.flatMap(([text, draw], place) => {
    const y = 22 + place * room;
    const next = lines[place + 1] ? [svg("path", { d: `M${x + 10} ${y + tall + 4}v10m-4 -4l4 4l4 -4`, class: "v-arrow" })] : [];
    return [label(x + (place ? 26 : 0), y - 7, text, { class: "v-text" }), draw(y), ...next];
  });
  const title = `A vector of ${d_model} numbers becomes ${heads} heads of ${result.width}, which attend apart, are joined to ${inner} numbers and projected to ${d_model}.`;
  return drawing(width, 22 + lines.length * room - 34, { role: "img", "aria-label": title, class: "v-plot" }, ...parts);
}

// Each head by itself: a small matrix of weights, where there is room.
function attend(x, y, heads, size, tall) {
  return svg("g", {}, ...Array.from({ length: heads }, (_, head) => {
    const left = x + head * size;
    const box = rectangle(left, y, Math.max(0.6, size - (size > 5 ? 1 : 0.25)), tall, { class: "v-outline" });
    if (size < 20) return box;
    const cell = 4, from = left + size / 2 - 2 * cell;
    const dots = Array.from({ length: 16 }, (_, at) =>
      rectangle(from + (at % 4) * cell, y + 3 + Math.floor(at / 4) * cell, cell - 0.8, cell - 0.8, { class: `v-bar v-a${(at * 7 + head * 5) % 3 ? " v-pale" : ""}` }));
    return svg("g", {}, box, ...dots);
  }));
}

// Where the operations go, beside a single head of the same total width.
function costs(result, alone, inputs, width) {
  const groups = (one) => {
    const of = (...names) => one.steps.filter((step) => names.some((name) => step.name.includes(name))).reduce((sum, step) => sum + step.flops, 0);
    return [["projections", of("projection")], ["scores and outputs", of("scores", "outputs")], ["softmax", one.softmax]];
  };
  const yours = groups(result), single = groups(alone);
  const most = Math.max(...yours.map(([, flops]) => flops), ...single.map(([, flops]) => flops));
  const left = 126, right = width < 480 ? 52 : 84, whole = width - left - right, tall = 13;
  const named = `${inputs.heads} ${inputs.heads === 1 ? "head" : "heads"}`;
  const parts = yours.flatMap(([name, flops], place) => {
    const y = 30 + place * 46;
    const other = single[place][1];
    return [
      label(left - 8, y + tall, name, { class: "v-text v-end v-middle" }),
      rectangle(left, y, Math.max(1, (whole * flops) / most), tall, { class: "v-bar v-a" }),
      label(left + Math.max(1, (whole * flops) / most) + 6, y + tall / 2, million(flops), { class: "v-text v-middle v-a-text" }),
      rectangle(left, y + tall + 2, Math.max(1, (whole * other) / most), tall, { class: "v-bar v-quiet-fill" }),
      label(left + Math.max(1, (whole * other) / most) + 6, y + tall * 1.5 + 2, million(other), { class: "v-text v-middle v-soft" }),
    ];
  });
  const title = `Operations: ${yours.map(([name, flops], place) => `${name} ${million(flops)} with ${named}, ${million(single[place][1])} with one`).join("; ")}.`;
  return drawing(width, 30 + 3 * 46, { role: "img", "aria-label": title, class: "v-plot" },
    pieces(2, 14, [["million operations: ", "v-soft"], [named, "v-a-text v-strong"], [width < 480 ? " and one as wide" : " and a single one of the same total width", "v-soft"]]), ...parts);
}

const million = (flops) => fixed(flops / 1e6, flops < 1e5 ? 4 : flops < 1e6 ? 3 : 1);

function view(result, inputs, stage) {
  const inner = inputs.heads * result.width;
  const alone = compute(stage.data, { ...inputs, heads: 1, free: true, width: inner });
  const loose = inputs.free ? "" : inputs.d_model % inputs.heads ? ` (${count(inputs.d_model)} ÷ ${inputs.heads}, rounded down)` : "";
  return {
    draw: [flow(result, inputs, stage.width), costs(result, alone, inputs, stage.width)],
    outputs: { d_model: count(inputs.d_model), width: count(result.width) },
    idle: inputs.free ? [] : ["width"],
    table: {
      caption: `One layer: ${inputs.n} tokens, d_model ${count(inputs.d_model)}, ${inputs.heads} heads of width ${count(result.width)}`,
      columns: ["step", "shape", "parameters", "operations"],
      rows: result.steps.map((step) => [step.name, step.shape.join(" × "), count(step.parameters), count(step.flops)]),
    },
    words: `${inputs.heads} heads of width ${count(result.width)}${loose}: ${count(result.parameters)} parameters, `
      + `${fixed(result.flops / 1e6, 1)} million operations, of which softmax takes ${fixed(result.softmax / 1e6, 3)} million.`,
  };
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}

