// What a learner typed, brought into the form in which it is compared. The same as headwise/study/answers_text.py;
// tests/study/grading holds both to the same cases.

import { Problem } from "./study.js";

const LONGEST = 200;
const SHOWN = 60; // characters of an answer that a message repeats
// Nobody's answers: see answers_text.py.
const NUMBER_EXAMPLES = "1234, 0.987, 6e-5 or 3^7";
const SHAPE_EXAMPLE = "6, 28, 496";
const KEPT = new Set("+*/=<>%√");
const ARTICLES = new Set(["a", "an", "the"]);
const SIGNS = { "−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "’": "'" };
const signs = (text) => text.replace(/[−–×·⋅÷’]/g, (sign) => SIGNS[sign]);
const RAISED = "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹";
const LOWERED = "-+0123456789";
// Blanks of Python and of JavaScript, which each know some that the other doesn't.
const BLANKS = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+/g;
const strip = (text) => text.replace(/^ +| +$/g, "");
const clean = (text) => strip(text.replace(BLANKS, " "));
// Raised signs after a ^, so that 10⁻⁹ is 10^-9.
const lowered = (text) => text.replace(/[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]+/g, (run) => `^${[...run].map((one) => LOWERED[RAISED.indexOf(one)]).join("")}`);
const notAnAnswer = (message) => new Problem("not-an-answer", message);

// What was typed as a message repeats it.
function shortened(text) {
  const letters = [...text];
  return letters.length <= SHOWN ? text : `${letters.slice(0, SHOWN - 1).join("")}…`;
}

export function words(text) {
  let given = signs(lowered([...text].slice(0, LONGEST * 4).join(""))).replaceAll("∞", "infinity");
  given = given.normalize("NFKD").toLowerCase().normalize("NFKD");
  given = clean(given).replace(/(^|[ ([=,^])-(?=[\p{L}\p{N}])/gu, "$1minus ").replace(/(?<![0-9])\.|\.(?![0-9])/g, " ");
  const kept = [...given]
    .filter((one) => !/\p{Mn}/u.test(one))
    .map((one) => (/[\p{L}\p{N}]/u.test(one) || KEPT.has(one) || "'.".includes(one) ? one : " "))
    .join("")
    .replaceAll("'", "");
  const parts = kept.split(/ +/).filter(Boolean);
  return parts.filter((part) => !ARTICLES.has(part)).join("") || parts.join("");
}

export function number(text, unit = "") {
  const given = clean(text);
  if (!given) throw notAnAnswer("Write a number first.");
  if ([...given].length > LONGEST) throw notAnAnswer(`That is longer than ${LONGEST} characters: write the number alone.`);
  let spelt = strip(signs(lowered(given).normalize("NFKC")).toLowerCase().replaceAll("**", "^"));
  const counted = clean(unit.normalize("NFKC").toLowerCase());
  let factor = 1;
  if (counted && spelt.endsWith(counted)) {
    spelt = spelt.slice(0, -counted.length);
  } else if (spelt.endsWith("%")) {
    spelt = spelt.slice(0, -1);
    factor = 0.01;
  }
  spelt = strip(spelt).replace(/(?<=[0-9]) *x *(?=[0-9])/g, "*");
  const value = factor * product(spelt);
  if (!Number.isFinite(value)) {
    const rest = unit ? `alone or with the unit of this question, ${unit}` : "without words or a unit";
    throw notAnAnswer(`“${shortened(given)}” is no number: write it as ${NUMBER_EXAMPLES}, ${rest}.`);
  }
  return value;
}

const product = (text) => text.split("*").reduce((value, factor) => {
  const [first, ...divisors] = factor.split("/");
  return divisors.reduce((left, divisor) => left / power(divisor), value * power(first));
}, 1);

// A power binds tighter than a sign: -2^2 is -4, (-2)^2 is 4.
function power(text) {
  const place = text.indexOf("^");
  if (place < 0) return plain(text);
  const raised = plain(strip(text.slice(place + 1)).replace(/^\(/, "").replace(/\)$/, ""));
  let base = strip(text.slice(0, place));
  let sign = 1;
  if (base.length > 1 && base.startsWith("(") && base.endsWith(")")) {
    base = base.slice(1, -1);
  } else if (/^[-+]/.test(base)) {
    sign = base[0] === "-" ? -1 : 1;
    base = strip(base.slice(1));
    if (/^[-+]/.test(base)) return NaN;
  }
  const found = plain(base);
  return Number.isNaN(found) || Math.abs(raised) > 400 ? NaN : sign * found ** raised; // NaN ** 0 is 1
}

function plain(text) {
  const bare = strip(text);
  if (/^[+-]?[1-9][0-9]{0,2}([,_' ])[0-9]{3}(?:\1[0-9]{3})*(?:\.[0-9]*)?$/.test(bare)) return Number(bare.replace(/[,_' ]/g, ""));
  if (/^[+-]?[0-9]+,[0-9]+$/.test(bare)) return Number(bare.replace(",", "."));
  return /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?$/.test(bare) ? Number(bare) : NaN;
}

export function shape(text) {
  const given = clean(text);
  if (!given) throw notAnAnswer(`Write a shape first, such as ${SHAPE_EXAMPLE}.`);
  let inner = signs([...given].slice(0, LONGEST * 2).join("").normalize("NFKC")).toLowerCase();
  inner = strip(inner).replace(/^(torch\.)?size/, "");
  const bare = strip(inner.replace(/[()[\]{}]/g, " "));
  if (!bare && strip(inner)) return [];
  const parts = bare.split(/[ ,;*x]+/).filter(Boolean);
  if (!parts.length || parts.some((part) => !/^[0-9]{1,12}$/.test(part))) {
    throw notAnAnswer(`“${shortened(given)}” is no shape: write its sizes, such as ${SHAPE_EXAMPLE}.`);
  }
  return parts.map(Number);
}
