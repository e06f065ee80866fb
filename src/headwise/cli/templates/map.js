// The large map of one head: a picture, tokens along both axes, and one weight at a time.

const LABEL = 11; // pixels of a label's letters
const map = { layer: 0, head: 0, row: 0, column: 0, large: false, cell: 8, tall: 8, across: 90, above: 90 };
let rows = 1, columns = 1; // of the chosen map

function fontOf() {
  return `${LABEL}px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
}

function shorten(text, context, room) {
  if (context.measureText(text).width <= room) return text;
  const letters = [...text];
  while (letters.length > 1 && context.measureText(letters.join("") + "…").width > room) letters.pop();
  return letters.join("") + "…";
}

function sizeCanvas(canvas, width, height) {
  const density = Math.min(devicePixelRatio || 1, 2, 4096 / Math.max(width, height));
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  return context;
}

function layOut() {
  const box = $("map");
  const context = $("key-labels").getContext("2d");
  context.font = fontOf();
  [rows, columns] = shapeOf(map.layer);
  map.row = Math.min(map.row, rows - 1);
  map.column = Math.min(map.column, columns - 1);
  const longest = (count, label) => Math.max(...Array.from({ length: count }, (_, cell) => context.measureText(label(cell)).width));
  const room = printing ? 620 : box.clientWidth;
  const limit = room < 420 ? 76 : 110;
  map.across = Math.ceil(Math.min(longest(rows, queryLabel), limit)) + 12;
  map.above = Math.ceil(Math.min(longest(columns, keyLabel), limit)) + 12;
  const whole = Math.max(1, (room - map.across - 18) / columns);
  map.cell = map.large && !printing ? Math.max(15, whole) : Math.min(whole, 34);
  map.tall = rows === columns ? map.cell : Math.max(Math.min(map.cell, 640 / rows), map.large || rows * 16 < 640 ? 16 : 3);
}

function paintMap() {
  layOut();
  const { cell, tall, across, above } = map;
  $("map").classList.toggle("large", map.large);
  const width = cell * columns, height = tall * rows;
  document.querySelector(".corner").style.cssText = `width:${across}px;height:${above}px`;

  const sheet = sizeCanvas($("picture"), width, height);
  const small = document.createElement("canvas");
  paint(small, matrixOf(map.layer, map.head), [rows, columns], columns, rows);
  sheet.imageSmoothingEnabled = false;
  sheet.drawImage(small, 0, 0, width, height);

  const ink = printing ? "#000" : getComputedStyle(document.documentElement).getPropertyValue("--ink");
  const keys = sizeCanvas($("key-labels"), width, above);
  const queries = sizeCanvas($("query-labels"), across, height);
  for (const context of [keys, queries]) {
    context.font = fontOf();
    context.fillStyle = ink;
    context.textBaseline = "middle";
  }
  queries.textAlign = "right";
  painted.row = painted.column = -1;
  pointAt(map.row, map.column, false);
}

// The tokens along both axes. Labels that would overlap, each other or the two that are picked, are left out.
const painted = { row: -1, column: -1 };
function paintLabels() {
  const { across, above } = map;
  const width = map.cell * columns, height = map.tall * rows;
  const draw = (context, label, [count, cell, long], picked, put) => {
    const size = cell * count, every = Math.ceil((LABEL + 3) / cell);
    const middle = (at) => Math.max(LABEL / 2 + 1, Math.min(size - LABEL / 2 - 1, (at + 0.5) * cell));
    for (let at = 0, last = -size; at < count; at += every) {
      if (middle(at) - last < LABEL) continue; // the last label may be moved inward
      last = middle(at);
      const text = `\u2068${shorten(label(at), context, long - 10)}\u2069`; // of its own direction, as in the page
      if (Math.abs(last - middle(picked)) >= LABEL + 3) put(text, last);
    }
  };
  if (painted.row !== map.row) {
    const context = $("query-labels").getContext("2d");
    context.clearRect(0, 0, across, height);
    draw(context, queryLabel, [rows, map.tall, across], map.row, (text, at) => context.fillText(text, across - 6, at));
  }
  if (painted.column !== map.column) {
    const context = $("key-labels").getContext("2d");
    context.clearRect(0, 0, width, above);
    draw(context, keyLabel, [columns, map.cell, above], map.column, (text, at) => {
      context.save();
      context.translate(at, above - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    });
  }
  Object.assign(painted, { row: map.row, column: map.column });
}

// Show the weight of one cell. Everything that shows a row follows.
function pointAt(row, column, follow) {
  map.row = Math.max(0, Math.min(rows - 1, row));
  map.column = Math.max(0, Math.min(columns - 1, column));
  const { cell, tall } = map;
  const put = (id, values) => { for (const [name, value] of Object.entries(values)) $(id).style[name] = value; };
  put("row-band", { top: `${map.row * tall}px`, height: `${tall}px` });
  put("column-band", { left: `${map.column * cell}px`, width: `${cell}px` });
  put("spot", { left: `${map.column * cell}px`, top: `${map.row * tall}px`, width: `${cell}px`, height: `${tall}px` });
  const middle = (at, size, count) => Math.max(0, Math.min(count * size - 16, (at + 0.5) * size - 8));
  put("query-now", { top: `${middle(map.row, tall, rows)}px` });
  put("key-now", { left: `${middle(map.column, cell, columns)}px` });
  $("query-now").replaceChildren(...queryParts(map.row));
  $("key-now").replaceChildren(...keyParts(map.column));
  paintLabels();
  const weight = matrixOf(map.layer, map.head)[map.row * columns + map.column] / 1000;
  $("readout").replaceChildren(...queryName(map.row), " → ", ...keyName(map.column), `: ${weight.toFixed(3)}${onAverage()}`);
  if (follow) reveal();
}

// Keep the cell in sight when the keyboard moves it.
function reveal() {
  const box = $("map");
  const left = map.column * map.cell, top = map.row * map.tall;
  const width = box.clientWidth - map.across, height = box.clientHeight - map.above;
  if (left < box.scrollLeft) box.scrollLeft = left;
  if (left + map.cell > box.scrollLeft + width) box.scrollLeft = left + map.cell - width;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + map.tall > box.scrollTop + height) box.scrollTop = top + map.tall - height;
}

function setUpMap(rowChosen) {
  const box = $("map"), sheet = $("sheet");
  const cellAt = (event) => {
    const frame = sheet.getBoundingClientRect();
    return [Math.floor((event.clientY - frame.top) / map.tall), Math.floor((event.clientX - frame.left) / map.cell)];
  };
  sheet.addEventListener("pointermove", (event) => pointAt(...cellAt(event), false));
  sheet.addEventListener("click", (event) => {
    pointAt(...cellAt(event), false);
    rowChosen(firstOf(map.row));
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const to = {
      ArrowLeft: [map.row, map.column - 1], ArrowRight: [map.row, map.column + 1],
      ArrowUp: [map.row - 1, map.column], ArrowDown: [map.row + 1, map.column],
      PageUp: [map.row - 10, map.column], PageDown: [map.row + 10, map.column],
      Home: [map.row, 0], End: [map.row, columns - 1],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    pointAt(...to, true);
    rowChosen(firstOf(map.row));
  });
  for (const [id, large] of [["fit", false], ["large", true]]) {
    $(id).addEventListener("click", () => {
      map.large = large;
      $("fit").setAttribute("aria-pressed", String(!large));
      $("large").setAttribute("aria-pressed", String(large));
      paintMap();
      reveal();
    });
  }
}
