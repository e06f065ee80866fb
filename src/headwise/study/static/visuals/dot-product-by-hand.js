// Scaled dot-product attention of one query. Every cell says how its number came about.

import { drawing, html, label, rectangle, stage, svg } from "./common.js";
import { columnLabels, heat } from "./heat.js";
import { fixed, listing } from "./words.js";

const STEPS = ["1 compare", "2 scale", "3 mask", "4 softmax: eˣ", "÷ sum"];

export function compute(data, inputs) {
  const { q, k, v } = { ...data, ...inputs };
  const row = Number(inputs.query), width = q[0].length;
  const divisor = inputs.scale ? Math.sqrt(width) : 1;
  const scores = k.map((key) => key.reduce((sum, one, place) => sum + one * q[row][place], 0));
  const scaled = scores.map((score) => score / divisor);
  const visible = k.map((_, key) => !inputs.causal || key <= row);
  const exponentials = scaled.map((score, key) => (visible[key] ? Math.exp(score) : 0));
  const total = exponentials.reduce((sum, one) => sum + one, 0);
  const highest = Math.max(...scaled.filter((_, key) => visible[key]));
  const safe = scaled.map((score, key) => (visible[key] ? Math.exp(score - highest) : 0));
  const whole = safe.reduce((sum, one) => sum + one, 0);
  const weights = safe.map((one) => one / whole);
  const output = v[0].map((_, place) => weights.reduce((sum, weight, key) => sum + weight * v[key][place], 0));
  return { row, divisor, scores, scaled, visible, exponentials, total, weights, output };
}

// At most two decimal places, none that are 0.
const short = (value) => fixed(value, 2).replace(/\.?0+$/, "");
const signed = (value) => (value < 0 ? `(${short(value)})` : short(value));
const large = (value) => (value < 1e5 ? fixed(value, 3) : value.toExponential(2).replace("e+", " × 10^"));
// The same in at most six letters, for a narrow cell.
const brief = (value) => (value < 1e5 ? fixed(value, value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0) : value.toExponential(0).replace("+", ""));

function view(result, inputs, stage) {
  const { tokens, q, k, v } = inputs;
  const { row, divisor, scores, scaled, visible, exponentials, total, weights, output } = result;
  const count = tokens.length, values = v[0].length, width = q[0].length;
  const narrow = stage.width < 300; // a window of 320 pixels: fewer decimal places, short names of rows
  const names = narrow ? ["1 compare", "2 scale", "3 mask", "4 eˣ", "÷ sum"] : STEPS;
  const left = narrow ? 74 : 92, sum = narrow ? 48 : stage.width < 480 ? 56 : 88;
  const wide = Math.min(150, (stage.width - left - sum) / count), tall = 36, top = 30;
  const second = top + STEPS.length * tall + 34;
  const right = left + count * wide;

  const products = (key) => q[row].map((one, place) => `${signed(one)} × ${signed(k[key][place])}`).join(" + ");
  const told = [
    (key) => `“${tokens[row]}” asks “${tokens[key]}”: ${products(key)} = ${short(scores[key])}`,
    (key) => (inputs.scale ? `${short(scores[key])} ÷ √${width} = ${short(scaled[key])}` : `not scaled: ${short(scores[key])} stays`),
    (key) => (visible[key] ? `“${tokens[key]}” may be seen: ${short(scaled[key])} stays` : `“${tokens[key]}” comes later: hidden, its score is minus infinity`),
    (key) => (visible[key] ? `e to the power ${short(scaled[key])} is ${large(exponentials[key])}` : "e to the power minus infinity is 0"),
    (key) => `${large(exponentials[key])} ÷ ${large(total)} = ${fixed(weights[key], 3)}: the weight of “${tokens[key]}”`,
  ];
  const letters = [
    (key) => short(scores[key]),
    (key) => short(scaled[key]),
    (key) => (visible[key] ? short(scaled[key]) : "−∞"),
    (key) => (wide < 76 ? brief : large)(exponentials[key]),
    (key) => fixed(weights[key], 3),
  ];
  const steps = heat(stage, {
    id: "steps", name: `From “${tokens[row]}” to the weight of each key: rows are steps, columns are keys`,
    rows: STEPS.length, columns: count, x: left, y: top, wide, tall,
    shade: (step, key) => (step === 4 ? weights[key] : 0),
    text: (step, key) => letters[step](key), say: (step, key) => told[step](key),
    first: [0, 0],
  });
  const mixed = heat(stage, {
    id: "mix", name: "Weight times value: rows are numbers of the value, columns are keys",
    rows: values, columns: count, x: left, y: second, wide, tall, shade: () => 0,
    text: (place, key) => fixed(weights[key] * v[key][place], 2),
    say: (place, key) => `weight ${fixed(weights[key], 3)} × ${short(v[key][place])} of “${tokens[key]}” = ${fixed(weights[key] * v[key][place], 3)}`,
  });
  const added = heat(stage, {
    id: "output", name: "The output: each of its numbers is the sum of a row",
    rows: values, columns: 1, x: right + 6, y: second, wide: sum - 8, tall, shade: () => 0,
    text: (place) => fixed(output[place], 2),
    say: (place) => `${tokens.map((_, key) => `${fixed(weights[key], 3)} × ${short(v[key][place])}`).join(" + ")} = ${fixed(output[place], 3)}`,
  });
  const hidden = svg("g", { "aria-hidden": "true" },
    columnLabels(tokens, { x: left, y: 20, wide }),
    label(right + sum / 2, 20, "sum", { class: "v-text v-soft v-center" }),
    ...names.map((name, step) => label(left - (narrow ? 4 : 8), top + (step + 0.5) * tall, name, { class: "v-text v-end v-middle" })),
    label(right + sum / 2, top + 3.5 * tall, (sum < 76 ? brief : large)(total), { class: "v-text v-center v-middle" }),
    label(right + sum / 2, top + 4.5 * tall, "1", { class: "v-text v-center v-middle" }),
    label(narrow ? 0 : left, second - 10, "5 mix: weight × value", { class: "v-text v-soft" }),
    label(right + sum / 2, second - 10, "output", { class: "v-text v-strong v-center" }),
    ...v[0].map((_, place) => label(left - 8, second + (place + 0.5) * tall, `number ${place + 1}`, { class: "v-text v-end v-middle" })),
    rectangle(right + 6, second, sum - 8, values * tall, { class: "v-frame" }),
  );
  const most = Math.max(...weights);
  const best = tokens.filter((_, key) => weights[key] > most - 1e-12).map((token) => `“${token}”`);
  return {
    draw: [drawing(stage.width, second + values * tall + 8, { class: "v-plot" }, hidden, steps, mixed, added)],
    table: {
      caption: `From the query “${tokens[row]}” to the weight of each key`,
      columns: ["key", "q · k", inputs.scale ? "÷ √d_k" : "not scaled", "e to that power", "weight"],
      rows: tokens.map((token, key) => [token, fixed(scores[key], 2), visible[key] ? fixed(scaled[key], 2) : "hidden",
        large(exponentials[key]), fixed(weights[key], 3)]),
    },
    words: `“${tokens[row]}” looks ${best.length === 1 ? "mostly" : "equally"} at ${listing(best)}: `
      + `weight ${fixed(most, 3)}${best.length === 1 ? "" : " each"}. `
      + `Its output is (${output.map((one) => fixed(one, 3)).join(", ")}).`,
  };
}

// The words and the vectors, to change.
function editors(stage) {
  const { data, own } = stage;
  own.tokens = [...data.tokens];
  const names = { q: ["query", "queries", 9], k: ["key", "keys", 9], v: ["value", "values", 99] };
  const heads = [], wrong = new Set();
  const told = html("p", { class: "v-note v-wrong", id: `${stage.root.dataset.visual}-wrong`, role: "status" });
  // What is wrong with the cells that hold no number of their range.
  const tell = () => {
    told.textContent = [...wrong].map(({ place, most, kept }) => `The ${place}: write a number from −${most} to ${most}; until then the picture keeps ${short(kept())}.`).join(" ");
  };
  const rename = () => heads.forEach(({ element, place }) => (element.textContent = own.tokens[place]));
  const numbers = (letter) => {
    const [one, all, most] = names[letter];
    own[letter] = data[letter].map((row) => [...row]);
    const rows = own[letter].map((row, token) => {
      const head = html("th", { scope: "row" }, own.tokens[token]);
      heads.push({ element: head, place: token });
      return html("tr", {}, head, ...row.map((value, place) => {
        const fault = { place: `${one} of word ${token + 1}, number ${place + 1}`, most, kept: () => own[letter][token][place] };
        const control = html("input", { type: "number", min: -most, max: most, step: 1, value, "aria-label": `${one} of word ${token + 1}, number ${place + 1}` });
        control.addEventListener("input", () => {
          const given = control.valueAsNumber;
          const fits = Number.isFinite(given) && Math.abs(given) <= most;
          control.setAttribute("aria-invalid", String(!fits));
          if (fits) {
            wrong.delete(fault);
            control.removeAttribute("aria-describedby");
          } else {
            wrong.add(fault);
            control.setAttribute("aria-describedby", told.id);
          }
          tell();
          if (!fits) return;
          own[letter][token][place] = given;
          stage.change();
        });
        return html("td", {}, control);
      }));
    });
    return html("table", { class: "v-editor" }, html("caption", {}, `${letter.toUpperCase()}: ${all}`), html("tbody", {}, ...rows));
  };
  const words = html("p", { class: "v-words" }, "Words ", ...own.tokens.map((token, place) => {
    const control = html("input", { type: "text", maxlength: 12, size: 6, value: token, "aria-label": `word ${place + 1}` });
    control.addEventListener("input", () => {
      own.tokens[place] = control.value.trim() || `word ${place + 1}`;
      rename();
      const option = stage.root.querySelector(`form [name="query"] option[value="${place}"]`);
      if (option) option.textContent = own.tokens[place];
      stage.change();
    });
    return control;
  }));
  return [html("div", { class: "v-editors", role: "group", "aria-label": "Words and vectors, to change" },
    words, numbers("q"), numbers("k"), numbers("v"), told)];
}

export function mount(root, data) {
  return stage(root, data, { compute, view, extra: editors });
}
