// Colours of weights. The ramp is in order of lightness, so it also reads in grey and in print.

const RAMPS = {
  light: [[255, 255, 255], [214, 228, 242], [127, 168, 211], [44, 99, 163], [10, 28, 58]],
  dark: [[23, 26, 32], [33, 54, 82], [58, 112, 170], [143, 193, 238], [247, 251, 255]],
};
const SHADES = 48; // more can't be told apart, and screenshots stay small
let printing = false;

function theme() {
  if (printing) return "light";
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// Red, green and blue of every thousandth, by the square root of the weight.
const tables = {};
function colours() {
  const name = theme();
  if (!tables[name]) {
    const ramp = RAMPS[name];
    const table = new Uint8ClampedArray(1001 * 3);
    for (let weight = 0; weight <= 1000; weight++) {
      const shade = Math.round(Math.sqrt(weight / 1000) * SHADES) / SHADES;
      const place = shade * (ramp.length - 1);
      const low = Math.min(Math.floor(place), ramp.length - 2);
      for (let part = 0; part < 3; part++) {
        table[weight * 3 + part] = ramp[low][part] + (ramp[low + 1][part] - ramp[low][part]) * (place - low);
      }
    }
    tables[name] = table;
  }
  return tables[name];
}

function colourOf(weight) {
  const table = colours(), at = Math.round(weight * 1000) * 3;
  return `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`;
}

// Black or white, whichever is easier to read on the colour of this weight.
function inkOn(weight) {
  const table = colours(), at = Math.round(weight * 1000) * 3;
  const linear = (value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = 0.2126 * linear(table[at]) + 0.7152 * linear(table[at + 1]) + 0.0722 * linear(table[at + 2]);
  return light > 0.179 ? "#000" : "#fff";
}

// The cells that each of so many pixels covers: from this one to before that one.
function covered(cells, pixels) {
  return Array.from({ length: pixels }, (_, pixel) => {
    const from = Math.floor((pixel * cells) / pixels);
    return [from, Math.max(from + 1, Math.floor(((pixel + 1) * cells) / pixels))];
  });
}

// Draw a matrix of [rows, columns] into width x height pixels. Where a pixel covers several cells it shows
// the largest, so that a thin diagonal doesn't fade.
function paint(canvas, matrix, [rows, columns], width, height) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const table = colours();
  const down = covered(rows, height), across = covered(columns, width);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += 4) {
      let most = 0;
      for (let row = down[y][0]; row < down[y][1]; row++) {
        for (let column = across[x][0]; column < across[x][1]; column++) {
          const weight = matrix[row * columns + column];
          if (weight > most) most = weight;
        }
      }
      image.data.set([table[most * 3], table[most * 3 + 1], table[most * 3 + 2], 255], at);
    }
  }
  context.putImageData(image, 0, 0);
}

function paintRamp() {
  const canvas = $("ramp"), context = canvas.getContext("2d");
  for (let x = 0; x < canvas.width; x++) {
    context.fillStyle = colourOf(x / (canvas.width - 1));
    context.fillRect(x, 0, 1, 1);
  }
}
