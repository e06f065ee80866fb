// Numbers in words, letter by letter as headwise.study.visuals.wording writes them.

const MINUS = "−", SPACE = "\u00a0";
const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

// With so many decimal places and commas between thousands.
export function fixed(value, places) {
  const [whole, part] = Math.abs(value).toFixed(places).split(".");
  const digits = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
  return (value < 0 && /[1-9]/.test(digits) ? MINUS : "") + digits;
}

export const count = (value) => fixed(value, 0);

export const percent = (share, places = 0) => `${fixed(100 * share, places)}${SPACE}%`;

export const raised = (exponent) => [...String(exponent)].map((letter) => RAISED[letter]).join("");

// A positive number as a power of ten.
export function power(value, places = 1) {
  if (value === 0) return "0";
  const [digits, exponent] = value.toExponential(places).split("e");
  return `${digits}${SPACE}×${SPACE}10${raised(Number(exponent))}`;
}

// A positive number of any size in few letters.
export function size(value) {
  if (value < 1e6) return fixed(value, value >= 100 || Number.isInteger(value) ? 0 : 2);
  return power(value, 2);
}

export const listing = (parts) =>
  parts.length === 1 ? parts[0] : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
