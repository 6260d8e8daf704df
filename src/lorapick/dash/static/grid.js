// Pods and their slots: one row for each pod, arrow keys from cell to cell.

import { createChip, updateChip } from "./chip.js";
import { $, keyed, make, orDash, percent, rate, setAttribute, setClass, setText, span, toneOf, whole, words } from "./dom.js";
import { hostOf, seatsOf } from "./model.js";
import { Rows } from "./rows.js";

const ORDERS = {
  swaps: (pod) => -pod.swaps,
  useful: (pod) => pod.useful ?? 2,
  queue: (pod) => -(pod.queue ?? -1),
};
const HEIGHT = 46;
const PAGE = 8;
const FEW = 12; // so many are shown without a scroll bar of their own

export class Grid {
  // `open.pod(name)` and `open.adapter(name)` show the card of one.
  constructor(model, view, open) {
    Object.assign(this, { model, view, open, active: { pod: null, column: 0 } });
    this.element = $("grid");
    this.rows = new Rows(this.element, {
      height: HEIGHT, key: (pod) => pod.name, role: "rowgroup",
      create: createRow,
      update: (node, pod, index) => this.updateRow(node, pod, index),
      keep: (pod) => pod.name === this.active.pod,
    });
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    this.element.addEventListener("click", (event) => this.chosen(event.target.closest("[data-column]")));
    this.element.addEventListener("focusin", (event) => this.focused(event.target));
  }

  draw() {
    const pods = this.ordered();
    this.pods = pods;
    if (!pods.some((pod) => pod.name === this.active.pod)) this.active = { pod: pods[0]?.name ?? null, column: 0 };
    setAttribute(this.element, "aria-rowcount", String(pods.length));
    this.element.classList.toggle("few", pods.length <= FEW);
    this.rows.draw(pods);
    setText($("pods-more"), this.note(pods));
  }

  ordered() {
    const pods = [...this.model.pods.values()].filter((pod) => this.view.showsPod(pod));
    const by = ORDERS[$("order").value];
    return by ? pods.sort((one, other) => by(one) - by(other)) : pods;
  }

  note(pods) {
    const { frame, pods: known } = this.model;
    if (frame.pods_total === 0) return "No pod yet: discovery has found none.";
    if (this.view.wanted) return `${pods.length} of ${known.size} pods have what you look for.`;
    return frame.pods_total > known.size ? `${frame.pods_total - known.size} more pods are not shown; /v1/fleet lists all.` : "";
  }

  updateRow(node, pod, index) {
    const seats = seatsOf(this.model, pod);
    const { now } = this.model.frame;
    setClass(node, `pod${pod.ready ? "" : " out"}${pod.critical ? " critical" : ""}`);
    setAttribute(node, "aria-rowindex", String(index + 1));
    node.dataset.pod = pod.name;
    setText(node.name, pod.name);
    setText(node.state, stateOf(pod));
    node.who.title = [pod.address, pod.error].filter(Boolean).join(": ");
    node.slots.style.setProperty("--columns", String(Math.max(1, seats.length)));
    keyed(node.slots, seats.map((cell, seat) => ({ cell, seat })), {
      key: ({ seat }) => seat, create: createSlot,
      update: (chip, { cell, seat }) => this.updateSlot(chip, cell, { seat, now, pod }),
    });
    updateHost(node, hostOf(this.model, pod), { column: seats.length + 1, view: this.view });
    updateFigures(node, pod, this.model.bounds);
    this.rove(node, pod);
  }

  updateSlot(chip, cell, { seat, now, pod }) {
    const changed = chip.pod === pod.name && cell !== null && chip.adapter !== undefined && chip.adapter !== cell.adapter;
    chip.pod = pod.name;
    chip.adapter = cell?.adapter ?? null;
    updateChip(chip, cell, { now, lit: cell !== null && this.view.isLit(cell.adapter), fresh: changed || (chip.classList.contains("fresh") && cell?.tier === "loading") });
    chip.dataset.column = String(seat + 1);
    setAttribute(chip, "aria-label", `slot ${seat + 1}: ${chip.title}`);
  }

  // Only one cell of the grid is reached by Tab.
  rove(node, pod) {
    const here = pod.name === this.active.pod;
    for (const cell of node.querySelectorAll("[data-column]")) cell.tabIndex = here && Number(cell.dataset.column) === this.active.column ? 0 : -1;
  }

  focused(target) {
    const cell = target.closest("[data-column]");
    if (!cell) return;
    const before = this.element.querySelector('[tabindex="0"]');
    if (before && before !== cell) before.tabIndex = -1;
    cell.tabIndex = 0;
    this.active = { pod: cell.closest(".pod").dataset.pod, column: Number(cell.dataset.column) };
  }

  chosen(cell) {
    if (!cell) return;
    if (cell.dataset.adapter) this.open.adapter(cell.dataset.adapter);
    else this.open.pod(cell.closest(".pod").dataset.pod);
  }

  pressed(event) {
    if (event.key === "Enter" || event.key === " ") this.chosen(event.target.closest("[data-column]"));
    else if (!this.moved(event)) return;
    event.preventDefault();
  }

  moved(event) {
    const row = this.pods.findIndex((pod) => pod.name === this.active.pod);
    if (row < 0 || event.altKey || event.metaKey) return false;
    const last = seatsOf(this.model, this.pods[row]).length + 1;
    const { column } = this.active;
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [row - PAGE, column], PageDown: [row + PAGE, column],
      Home: event.ctrlKey ? [0, 0] : [row, 0], End: event.ctrlKey ? [this.pods.length - 1, last] : [row, last],
    }[event.key];
    if (!to) return false;
    this.go(...to);
    return true;
  }

  go(row, column) {
    const at = Math.min(this.pods.length - 1, Math.max(0, row));
    const pod = this.pods[at];
    const most = seatsOf(this.model, pod).length + 1;
    this.active = { pod: pod.name, column: Math.min(most, Math.max(0, column)) };
    this.rows.reveal(at);
    this.element.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }
}

function createRow() {
  const node = make("div", "pod");
  node.setAttribute("role", "row");
  node.who = make("div", "who");
  node.who.setAttribute("role", "rowheader");
  node.who.dataset.column = "0";
  node.name = make("b");
  node.state = make("span", "state");
  node.who.append(node.name, node.state);
  node.slots = make("div", "slots");
  node.slots.setAttribute("role", "presentation");
  node.host = make("div", "host n");
  node.host.setAttribute("role", "gridcell");
  node.figures = ["swaps", "useful", "hits", "queue", "kv"].map((name) => {
    const figure = make("div", `figure n ${name}`);
    figure.setAttribute("role", "gridcell");
    return figure;
  });
  node.append(node.who, node.slots, node.host, ...node.figures);
  return node;
}

function createSlot() {
  const chip = createChip("div");
  chip.setAttribute("role", "gridcell");
  return chip;
}

function updateHost(node, cells, { column, view }) {
  setText(node.host, cells.length ? String(cells.length) : "0");
  node.host.dataset.column = String(column);
  node.host.classList.toggle("lit", cells.some((cell) => view.isLit(cell.adapter)));
  const said = cells.length ? `in host memory: ${cells.slice(0, 12).map((cell) => cell.adapter).join(", ")}${cells.length > 12 ? ", ..." : ""}` : "nothing else in host memory";
  if (node.host.title !== said) {
    node.host.title = said;
    node.host.setAttribute("aria-label", said);
  }
}

function updateFigures(node, pod, bounds) {
  const [swaps, useful, hits, queue, kv] = node.figures;
  figure(swaps, rate(pod.swaps), { tone: toneOf.swaps(pod.swaps, bounds), said: `${rate(pod.swaps)} swaps a second${pod.residency === null ? "" : `; adapters stay ${span(pod.residency)}`}; ${pod.swap_queue} requests wait for a load` });
  figure(useful, orDash(pod.useful, percent), { tone: toneOf.useful(pod.useful, bounds), said: "share of its busy time that was inference, estimated" });
  figure(hits, pod.hits === null ? "–" : `${percent(pod.hits)} (${orDash(pod.hits_believed, percent)})`, { tone: toneOf.hits(pod.hits, bounds), said: "requests that found their adapter on the GPU (believed when sent)" });
  figure(queue, pod.queue === null ? "–" : `${whole(pod.queue)}/${pod.max_queue}`, { tone: pod.queue !== null && pod.queue >= pod.max_queue ? "bad" : "", said: `${pod.in_flight} in flight` });
  figure(kv, orDash(pod.kv, percent), { tone: pod.kv >= 0.95 ? "warn" : "", said: `GPU ${orDash(pod.gpu, percent)} (${pod.gpu_source})` });
}

function figure(node, text, { tone, said }) {
  setText(node, text);
  node.classList.toggle("bad", tone === "bad");
  node.classList.toggle("warn", tone === "warn");
  if (node.title !== said) node.title = said;
}

export function stateOf(pod) {
  const parts = pod.role === "both" ? [] : [pod.role];
  if (!pod.ready) parts.push(words(pod.reason ?? "not ready"));
  if (pod.scraped_s === null) parts.push("never scraped");
  else if (pod.scraped_s > 0) parts.push(`scraped ${span(pod.scraped_s)} ago`);
  if (pod.reserved) parts.push(`${pod.reserved} slot${pod.reserved > 1 ? "s" : ""} kept`);
  if (pod.prefill_tokens) parts.push(`${pod.prefill_tokens} tokens to prefill`);
  if (pod.loading) parts.push(`${pod.loading} loading`);
  if (pod.pressure && pod.pressure !== "none") parts.push(`pressure ${pod.pressure}`);
  if (pod.restarts) parts.push(`${pod.restarts} restart${pod.restarts > 1 ? "s" : ""}`);
  if (parts.join() === pod.role) parts.push("ready");
  return parts.join(" · ") || "ready";
}
