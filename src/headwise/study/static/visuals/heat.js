// Matrices of cells, walked by arrow keys; each cell says its own value when it is reached.

import { label, NO_STOP, plainKey, rectangle, round, step, svg } from "./common.js";

export const DARK = 0.6; // from this shade on, letters on a cell are light (dark in the dark theme)

// The colour of a share of 1: one hue, even steps of lightness, mixed by the style sheet for either theme.
export function shaded(element, share) {
  element.classList.add("v-shade");
  element.style.setProperty("--v-share", `${round(Math.max(0, Math.min(1, share)) * 100)}%`);
  return element;
}

// A group that can be walked.
//
// id: of this matrix within its visual; name: what it is called
// rows, columns: how many; x, y, wide, tall: place of the first cell and size of each
// shade(row, column): 0 to 1, or null for a cell that holds nothing
// text(row, column): letters on the cell, if any; say(row, column): what is told of it
// pick(row, column): a click, Enter or space; follow: walking picks as well
// picked: [row, column] or null (a ring around it); mark(row, column, box): further elements
export function heat(stage, { id, name, rows, columns, x, y, wide, tall, shade, text, say, pick, follow, picked, mark, gap = 1, first }) {
  const spot = stage.spots[id] || first || picked || [0, 0];
  stage.spots[id] = [Math.min(spot[0], rows - 1), Math.min(spot[1], columns - 1)];
  const grid = svg("g", { role: "grid", "aria-label": name, class: "v-heat", ...NO_STOP });
  const cells = [];
  for (let row = 0; row < rows; row++) {
    const line = svg("g", { role: "row" });
    cells.push([]);
    for (let column = 0; column < columns; column++) {
      const left = x + column * wide, top = y + row * tall;
      const value = shade(row, column);
      const box = rectangle(left + gap / 2, top + gap / 2, wide - gap, tall - gap, { class: value === null ? "v-none" : null });
      if (value !== null) shaded(box, value);
      const here = stage.spots[id][0] === row && stage.spots[id][1] === column;
      const cell = svg("g", { role: "gridcell", "aria-label": say(row, column), tabindex: here ? "0" : "-1", "data-key": `${id}:${row}:${column}` }, box);
      const letters = text?.(row, column);
      if (letters) cell.append(label(left + wide / 2, top + tall / 2, letters, { class: `v-on${value !== null && value >= DARK ? " v-light" : ""}` }));
      const further = mark?.(row, column, [left, top]);
      if (further) cell.append(further);
      line.append(cell);
      cells[row].push(cell);
    }
    grid.append(line);
  }
  const ring = rectangle(0, 0, wide, tall, { class: "v-ring", "aria-hidden": "true", visibility: "hidden" });
  const around = picked ? rectangle(x + picked[1] * wide, y + picked[0] * tall, wide, tall, { class: "v-picked", "aria-hidden": "true" }) : null;
  listen(stage, { id, grid, cells, ring, say, pick, follow, at: [x, y], size: [wide, tall] });
  return svg("g", {}, grid, ...(around ? [around] : []), ring);
}

const placeOf = (cell) => cell.dataset.key.split(":").slice(-2).map(Number);

function listen(stage, { id, grid, cells, ring, say, pick, follow, at, size }) {
  const show = ([row, column]) => stage.peek(say(row, column));
  grid.addEventListener("focusin", (event) => {
    const cell = event.target.closest("[data-key]");
    if (!cell) return;
    const [row, column] = placeOf(cell);
    cells[stage.spots[id][0]]?.[stage.spots[id][1]]?.setAttribute("tabindex", "-1");
    stage.spots[id] = [row, column];
    cells[row][column].setAttribute("tabindex", "0");
    ring.setAttribute("x", round(at[0] + column * size[0]));
    ring.setAttribute("y", round(at[1] + row * size[1]));
    ring.setAttribute("visibility", "visible");
    show([row, column]);
  });
  grid.addEventListener("focusout", () => ring.setAttribute("visibility", "hidden"));
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[data-key]");
    if (!cell || !plainKey(event)) return;
    const place = placeOf(cell);
    if (pick && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      pick(...place);
      return;
    }
    const to = step(event.key, place, [cells.length, cells[0].length]);
    if (!to) return;
    event.preventDefault();
    cells[to[0]][to[1]].focus({ preventScroll: false });
    if (follow && pick) pick(...to);
  });
  grid.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("[data-key]");
    if (cell) show(placeOf(cell));
  });
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("[data-key]");
    if (!cell) return;
    cell.focus({ preventScroll: true });
    if (pick) pick(...placeOf(cell));
  });
}

// Labels beside a matrix. Those that would overlap are left out.
export function rowLabels(texts, { x, y, tall, size = 12 }) {
  const every = Math.max(1, Math.ceil((size + 2) / tall));
  return svg("g", { "aria-hidden": "true" }, ...texts.flatMap((text, row) =>
    row % every ? [] : [label(x, y + (row + 0.5) * tall, text, { class: "v-text v-end v-middle" })]));
}

export function columnLabels(texts, { x, y, wide, size = 12, turned = false }) {
  const every = Math.max(1, Math.ceil(((turned ? size : 7 * Math.max(...texts.map((text) => text.length))) + 3) / wide));
  return svg("g", { "aria-hidden": "true" }, ...texts.flatMap((text, column) => {
    if (column % every) return [];
    const left = x + (column + 0.5) * wide;
    return [turned
      ? label(left, y, text, { class: "v-text v-middle", transform: `rotate(-90 ${round(left)} ${round(y)})` })
      : label(left, y, text, { class: "v-text v-center" })];
  }));
}
