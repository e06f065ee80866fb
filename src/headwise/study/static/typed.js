// What a learner typed, brought into the form in which it is compared. The same as headwise/study/answers_text.py;
// tests/study/grading holds both to the same cases.

import { Problem } from "./study.js";

const LONGEST = 200;
const KEPT = new Set("+*/=<>%√");
const ARTICLES = new Set(["a", "an", "the"]);
const SIGNS = { "−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "’": "'" };
const signs = (text) => text.replace(/[−–×·⋅÷’]/g, (sign) => SIGNS[sign]);
const RAISED = "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹";
const LOWERED = "-+0123456789";
const clean = (text) => text.split(/\s+/).filter(Boolean).join(" ");
const notAnAnswer = (message) => new Problem("not-an-answer", message);

export function words(text) {
  let given = signs([...text].slice(0, LONGEST * 4).join("")).replaceAll("∞", "infinity");
  given = given.normalize("NFKD").toLowerCase().normalize("NFKD");
  given = given.replace(/(^|[\s([=,])-(?=[\p{L}\p{N}])/gu, "$1minus ");
  const kept = [...given]
    .filter((one) => !/\p{Mn}/u.test(one))
    .map((one) => (/[\p{L}\p{N}]/u.test(one) || KEPT.has(one) || one === "'" ? one : " "))
    .join("")
    .replaceAll("'", "");
  const parts = kept.split(/\s+/).filter(Boolean);
  return parts.filter((part) => !ARTICLES.has(part)).join("") || parts.join("");
}

export function number(text, unit = "") {
  const given = clean(text);
  if (!given) throw notAnAnswer("Write a number first.");
  if ([...given].length > LONGEST) throw notAnAnswer(`That is longer than ${LONGEST} characters: write the number alone.`);
  let spelt = given.replace(/[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]+/g, (run) => `^${[...run].map((one) => LOWERED[RAISED.indexOf(one)]).join("")}`);
  spelt = signs(spelt.normalize("NFKC")).toLowerCase().replaceAll("**", "^").trim();
  const counted = unit.normalize("NFKC").toLowerCase().trim();
  let factor = 1;
  if (counted && spelt.endsWith(counted)) {
    spelt = spelt.slice(0, -counted.length);
  } else if (spelt.endsWith("%")) {
    spelt = spelt.slice(0, -1);
    factor = 0.01;
  }
  spelt = spelt.trim().replace(/(?<=\d)\s*x\s*(?=\d)/g, "*");
  const value = factor * product(spelt);
  if (!Number.isFinite(value)) {
    const rest = unit ? `, or with its unit (${unit})` : "";
    throw notAnAnswer(`“${given}” is no number: write it as 512, 0.5, 1e-9 or 2^20${rest}.`);
  }
  return value;
}

const product = (text) => text.split("*").reduce((value, factor) => {
  const [first, ...divisors] = factor.split("/");
  return divisors.reduce((left, divisor) => left / power(divisor), value * power(first));
}, 1);

function power(text) {
  const place = text.indexOf("^");
  if (place < 0) return plain(text);
  const raised = plain(text.slice(place + 1).trim().replace(/^\(/, "").replace(/\)$/, ""));
  const base = plain(text.slice(0, place));
  return Number.isNaN(base) || Math.abs(raised) > 400 ? NaN : base ** raised; // NaN ** 0 is 1
}

function plain(text) {
  const bare = text.trim();
  if (/^[+-]?[1-9]\d{0,2}([,_' ])\d{3}(?:\1\d{3})*(?:\.\d*)?$/.test(bare)) return Number(bare.replace(/[,_' ]/g, ""));
  if (/^[+-]?\d+,\d+$/.test(bare)) return Number(bare.replace(",", "."));
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?$/.test(bare) ? Number(bare) : NaN;
}

export function shape(text) {
  const given = clean(text);
  if (!given) throw notAnAnswer("Write a shape first, such as 2, 7, 512.");
  let inner = signs([...given].slice(0, LONGEST * 2).join("").normalize("NFKC")).toLowerCase();
  inner = inner.trim().replace(/^(torch\.)?size/, "");
  const bare = inner.replace(/[()[\]{}]/g, " ").trim();
  if (!bare && inner.trim()) return [];
  const parts = bare.split(/[\s,;*x]+/).filter(Boolean);
  if (!parts.length || parts.some((part) => !/^[0-9]{1,12}$/.test(part))) {
    throw notAnAnswer(`“${[...given].slice(0, 60).join("")}” is no shape: write its sizes, such as 2, 7, 512.`);
  }
  return parts.map(Number);
}
