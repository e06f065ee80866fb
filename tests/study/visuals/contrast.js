// The least contrast of letters on shaded cells, over every shade.

const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function rgb(colour) {
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}

const linear = (part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);

export function leastContrast(turn) {
  const style = getComputedStyle(document.querySelector(".visual"));
  const [low, high, onLow, onHigh] = ["low", "high", "on-low", "on-high"].map((name) => style.getPropertyValue(`--v-${name}`));
  const found = [];
  for (let share = 0; share <= 100; share++) {
    const one = light(rgb(`color-mix(in oklab, ${high} ${share}%, ${low})`));
    const two = light(rgb(share / 100 >= turn ? onHigh : onLow));
    found.push((Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05));
  }
  return Math.min(...found);
}
