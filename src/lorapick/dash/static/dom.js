// Helpers for elements and figures. Names come from outside and are only ever set as text.

export const $ = (id) => document.getElementById(id);
export const dash = "–";

export function make(tag, className = "", text = null) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== null) node.textContent = text;
  return node;
}

export function drawing(tag, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setClass(node, name) {
  if (node.className !== name) node.className = name;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Keeps one child for each key, in the order of the keys, so that hovering and focus survive a frame.
export function keyed(parent, items, { key, create, update = () => {} }) {
  const old = parent.kept ?? new Map();
  const now = new Map();
  for (const item of items) now.set(key(item), old.get(key(item)) ?? create(item));
  for (const [id, node] of old) if (!now.has(id)) node.remove();
  let at = 0;
  for (const item of items) {
    const node = now.get(key(item));
    update(node, item);
    if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] ?? null);
    at += 1;
  }
  parent.kept = now;
}

export const whole = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 0 });
export const orDash = (value, say) => (value === null || value === undefined ? dash : say(value));
export const percent = (ratio) => `${Math.round(ratio * 100)} %`;
export const rate = (number) => (number >= 100 ? whole(number) : number >= 10 ? number.toFixed(1) : number.toFixed(2));
export const words = (name) => name.replaceAll("_", " ");

export function span(seconds) {
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return age(seconds);
}

// As short as it goes: an age within a slot.
export function age(seconds) {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function clock(wall) {
  return new Date(wall * 1000).toLocaleTimeString("en-GB");
}

// Tones follow the bounds of the alerts as configured, and are amber some way before the worse one.
export function below(value, good, fair) {
  return value === null ? "" : value >= good ? "good" : value >= fair ? "warn" : "bad";
}

export function above(value, good, fair) {
  return value === null ? "" : value < good ? "good" : value < fair ? "warn" : "bad";
}

export const toneOf = {
  hits: (value, bounds) => below(value, bounds.hit_ratio_target, bounds.hit_ratio),
  swaps: (value, bounds) => above(value, bounds.swap_rate / 5, bounds.swap_rate),
  useful: (value, bounds) => below(value, (1 + bounds.useful_share) / 2, bounds.useful_share),
};
