// One way to write a symbol, out of the many in which it is typed: √d_k, sqrt(d_k) and \sqrt{d_k}; β₂, beta_2 and
// \beta_2; W_i^Q and W^Q_i. The index holds formulas as headwise.study.render.reading reads their TeX.

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀ', RAISED_AS = '0123456789+-nT';
const LOWERED = '₀₁₂₃₄₅₆₇₈₉₊₋ₙₖᵢₜᵥ', LOWERED_AS = '0123456789+-nkitv';
const GREEK = {
  alpha: 'α', beta: 'β', gamma: 'γ', delta: 'δ', epsilon: 'ε', varepsilon: 'ε', theta: 'θ', lambda: 'λ', mu: 'μ', pi: 'π', sigma: 'σ',
  phi: 'φ', psi: 'ψ', omega: 'ω',
};
const SIGNS = { sum: 'σ', cdot: '·', times: '×', top: 't', infty: '∞', approx: '≈', le: '≤', leq: '≤', ge: '≥', geq: '≥', ne: '≠', neq: '≠', dots: '…', ldots: '…' };

const GREEK_WORDS = new RegExp(`(?<!\\p{L})(?:${Object.keys(GREEK).join('|')})(?!\\p{L})`, 'gu');

const marked = (text, marks, as, sign) =>
  text.replace(new RegExp(`[${marks}]+`, 'gu'), (run) => sign + [...run].map((mark) => as[[...marks].indexOf(mark)]).join(''));

// Letters without their marks, all small; 4,000 is 4000.
export const plain = (text) => text.toLowerCase().normalize('NFKD').replace(/\p{M}/gu, '').replace(/(?<=\d),(?=\d{3}(?!\d))/g, '');

export function normalized(text) {
  let made = marked(marked(text, RAISED, RAISED_AS, '^'), LOWERED, LOWERED_AS, '_');
  made = plain(made)
    .replace(/\\(?:text|math[a-z]+|operatorname)\s*\{([^{}]*)\}/g, '$1').replace(/\\(?:left|right|big+|[,;:! ])/g, '')
    .replace(/\\[td]?frac\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}/g, '$1/$2')
    .replace(/\\([a-z]+)/g, (_, name) => SIGNS[name] ?? name)
    .replace(/\{,\}/g, ',').replace(/[{}]/g, (brace) => (brace === '{' ? '(' : ')'))
    .replace(GREEK_WORDS, (word) => GREEK[word])
    .replace(/−/g, '-').replace(/\*/g, '·')
    .replace(/\s*([=+·×/^_()<>≈≤≥[\]])\s*/g, '$1').replace(/\s+-\s+/g, '-')
    .replace(/sqrt(?=[\s(√\d])\s*/g, '√');
  for (let before = ''; before !== made;) {
    before = made;
    made = made.replace(/([√^_])\(([\p{L}\p{N}._-]+)\)/gu, (whole, sign, inner) => (sign !== '√' && inner.includes('_') ? whole : sign + inner))
      .replace(/(_(?:[\p{L}\p{N}.]+|\([^()]*\)))(\^(?:-?[\p{L}\p{N}.]+|\([^()]*\)))/gu, '$2$1');
  }
  return made.trim();
}

// The parts of a normalized formula: h and 8 of h=8.
export const partsOf = (text) => text.split(/[\s=+·×/<>≈≤≥()[\],]+/).filter(Boolean);

// Does a query ask for a symbol? Then it isn't taken apart into words.
export const symbolic = (query) => /[_^=√\\{}()[\]/*+·×<>≈≤≥∞\u0370-\u03ff⁰-₟²³¹ᴬ-ᵪ]|\bsqrt\b/u.test(query) || /^\s*(?:alpha|beta|epsilon|omega|theta)[\s\d]*$/i.test(query);

// What finds a symbol in normalized text: with or without the line of an index between a letter and its number.
export function pattern(term) {
  const escaped = term.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(escaped.replace(/(\p{L})(?=\d)/gu, '$1_?'), 'gu');
}
