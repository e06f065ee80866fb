// HTML that the server or answers.json gives, brought into the page: only elements and attributes that a guide's
// text is made of. The parser runs nothing and fetches nothing.

const ELEMENTS = new Set(
  `a abbr b blockquote br cite code dd del details div dl dt em figcaption figure h3 h4 h5 h6 hr i kbd li mark ol p
  pre q s samp small span strong sub summary sup table tbody td th thead tr u ul var
  math annotation maction menclose merror mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts
  mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover semantics none`
    .split(/\s+/)
);
const ATTRIBUTES = new Set(
  `accent accentunder align cite class colspan columnalign columnspacing dir display displaystyle encoding fence form
  height href id lang largeop linethickness lspace mathsize mathvariant maxsize minsize movablelimits notation rel role
  rowspacing rowspan rspace scope scriptlevel separator start stretchy symmetric tabindex title voffset width
  aria-hidden aria-label data-source`
    .split(/\s+/)
);
const MATH = "http://www.w3.org/1998/Math/MathML";

function kept(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  const name = node.localName;
  if (name === "script" || name === "style" || name === "template") return null;
  const inner = [...node.childNodes].map(kept).filter(Boolean);
  if (!ELEMENTS.has(name)) {
    const all = document.createDocumentFragment();
    all.append(...inner);
    return all;
  }
  const made = node.namespaceURI === MATH ? document.createElementNS(MATH, name) : document.createElement(name);
  for (const { name: attribute, value } of node.attributes) {
    if (!ATTRIBUTES.has(attribute)) continue;
    if ((attribute === "href" || attribute === "cite") && !/^(https?:|[.#/]|[^:]*$)/i.test(value.trim())) continue;
    made.setAttribute(attribute, value);
  }
  made.append(...inner);
  return made;
}

// A fragment of the page made of HTML.
export function safe(text) {
  const parsed = new DOMParser().parseFromString(text || "", "text/html");
  const all = document.createDocumentFragment();
  all.append(...[...parsed.body.childNodes].map(kept).filter(Boolean));
  return all;
}

// A copy of what an element holds, without ids, which would be there twice.
export function copied(element) {
  const all = document.createDocumentFragment();
  for (const child of element.childNodes) all.append(child.cloneNode(true));
  for (const one of all.querySelectorAll("[id]")) one.removeAttribute("id");
  return all;
}
