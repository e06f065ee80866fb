"use strict";
// What every page needs: elements, numbers that travel compressed, meters and tables.

const $ = (id) => document.getElementById(id);
const page = JSON.parse($("data").textContent);

async function unpack(id) {
  const packed = Uint8Array.from(atob($(id).textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const half = raw.length / 2; // high bytes, then low bytes
  const numbers = new Uint16Array(half);
  for (let i = 0; i < half; i++) numbers[i] = raw[i] * 256 + raw[half + i];
  return numbers;
}

const percent = (share) => (share < 0.0995 ? (share * 100).toFixed(1) : Math.round(share * 100)) + "%";

function make(tag, text, attributes) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.append(...[text].flat());
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  return element;
}

function makeSvg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
