// One adapter in one place: colour, letter, name, age, requests in flight.

import { age, make, setClass, setText } from "./dom.js";
import { MARKS, SAID } from "./model.js";

const TAIL = 4; // names tend to differ at their end: what a narrow slot shows

export function createChip(tag = "span") {
  const chip = make(tag);
  chip.mark = make("i", "mark");
  chip.label = make("span", "label");
  chip.tail = make("span", "tail");
  chip.age = make("span", "age");
  chip.count = make("span", "count");
  const top = make("span", "upper");
  const bottom = make("span", "lower");
  top.append(chip.mark, chip.label, chip.tail);
  bottom.append(chip.age, chip.count);
  chip.append(top, bottom);
  return chip;
}

// `cell` null: a free slot. `lit` of the adapters that are looked for; `fresh`: it came just now.
export function updateChip(chip, cell, { now, lit = false, fresh = false }) {
  const tier = cell ? cell.tier : "free";
  setClass(chip, `chip ${tier}${cell?.pinned ? " pinned" : ""}${lit ? " lit" : ""}${fresh ? " fresh" : ""}`);
  setText(chip.mark, MARKS[tier] ?? "");
  setText(chip.label, cell ? cell.adapter : "free");
  setText(chip.tail, cell ? cell.adapter.slice(-TAIL) : "");
  setText(chip.age, cell ? age(now - cell.since) : "");
  setText(chip.count, cell?.inFlight ? `${cell.inFlight}×` : "");
  if (cell) chip.dataset.adapter = cell.adapter;
  else delete chip.dataset.adapter;
  const said = cell ? describe(cell, now) : "free slot";
  if (chip.title !== said) chip.title = said;
}

export function describe(cell, now) {
  const parts = [`${cell.adapter}: ${SAID[cell.tier] ?? cell.tier} for ${age(now - cell.since)}`];
  if (cell.inFlight) parts.push(`${cell.inFlight} in flight`);
  if (cell.pinned) parts.push("pinned");
  parts.push(cell.source);
  return parts.join(", ");
}

export function tierChip(tier, text) {
  const chip = make("span", `chip ${tier}`);
  chip.append(make("i", "mark", MARKS[tier] ?? ""), make("span", "label", text));
  return chip;
}
