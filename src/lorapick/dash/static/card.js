// The card of one pod, one adapter or one decision; from one card to the next and back. Escape closes.

import { tierChip } from "./chip.js";
import { $, keyed, make, orDash, percent, rate, setText, span, whole } from "./dom.js";
import { fillDecisions } from "./decisions.js";
import { ask, explain, titleOf } from "./explanation.js";
import { stateOf } from "./grid.js";
import { SAID } from "./model.js";

const MOST_KEPT = 1000;
const ORDER = ["gpu_serving", "gpu_idle", "loading", "cpu"];

export class Card {
  constructor(model) {
    Object.assign(this, { model, trail: [], refresh: null });
    this.dialog = $("card");
    this.open = {
      pod: (name) => this.go(() => this.pod(name)),
      adapter: (name) => this.go(() => this.adapter(name)),
      decision: (id) => this.go(() => this.decision(id)),
    };
    $("card-close").addEventListener("click", () => this.dialog.close());
    $("card-back").addEventListener("click", () => this.back());
    this.dialog.addEventListener("close", () => {
      this.trail = [];
      this.refresh = null;
    });
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close(); // beside the card
    });
  }

  // While it is open it follows the frames.
  draw() {
    if (this.dialog.open && this.refresh) this.refresh();
  }

  go(show) {
    this.trail.push(show);
    this.show();
  }

  back() {
    this.trail.pop();
    this.show();
    $("card-close").focus();
  }

  show() {
    this.refresh = null;
    $("card-back").hidden = this.trail.length < 2;
    this.trail[this.trail.length - 1]();
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
  }

  fill(title, ...parts) {
    setText($("card-title"), title);
    $("card-body").replaceChildren(...parts);
  }

  pod(name) {
    const facts = make("p", "note");
    const figures = make("p", "note");
    const table = places("adapter");
    this.fill(name, facts, figures, table);
    this.refresh = () => {
      const pod = this.model.pods.get(name);
      setText(facts, pod ? [pod.address, stateOf(pod), pod.error].filter(Boolean).join(" · ") : "This pod is gone.");
      setText(figures, pod ? figuresOf(pod) : "");
      this.fillPlaces(table, this.model.cells.get(name) ?? [], { key: (cell) => cell.adapter, to: this.open.adapter });
    };
    this.refresh();
  }

  adapter(name) {
    const facts = make("p", "note");
    const table = places("pod");
    const title = make("h3", "", "Last decisions about it");
    const decisions = make("table", "rows");
    decisions.createTBody();
    this.fill(name, facts, table, title, decisions);
    this.refresh = () => {
      const row = this.model.adapters.get(name);
      setText(facts, row ? adapterFacts(row, this.model.frame.now) : "Nobody asked for it in the last 10 minutes.");
      this.fillPlaces(table, [...(this.model.holders.get(name)?.values() ?? [])], { key: (cell) => cell.pod, to: this.open.pod });
    };
    this.refresh();
    this.decisionsOf(name, decisions, title);
  }

  async decisionsOf(name, table, title) {
    const response = await fetch(`/v1/decisions?limit=${MOST_KEPT}`);
    const { decisions } = response.ok ? await response.json() : { decisions: [] };
    const rows = decisions.filter((row) => row.adapter === name).slice(0, 12);
    if (!rows.length) setText(title, `None of the last ${decisions.length} decisions was about it`);
    fillDecisions(table.tBodies[0], rows, { now: this.model.frame.now, open: this.open });
  }

  async decision(id) {
    this.fill(id, make("p", "note", "asking the picker"));
    const here = this.trail.length;
    try {
      const { answer, problem } = await ask(id);
      if (this.trail.length !== here) return; // somebody has gone on
      if (answer) this.fill(titleOf(answer), ...explain(answer));
      else this.fill(id, make("p", "note", problem));
    } catch {
      this.fill(id, make("p", "note", "The picker does not answer; try again when it is back."));
    }
  }

  fillPlaces(table, cells, { key, to }) {
    const { now } = this.model.frame;
    const rows = [...cells].sort((one, other) => ORDER.indexOf(one.tier) - ORDER.indexOf(other.tier) || (key(one) < key(other) ? -1 : 1));
    keyed(table.tBodies[0], rows, {
      key: (cell) => `${key(cell)} ${cell.tier}`,
      create: (cell) => createPlace(cell, key(cell), to),
      update: (node, cell) => {
        setText(node.age, span(now - cell.since));
        setText(node.flight, String(cell.inFlight));
        setText(node.how, cell.pinned ? `${cell.source}, pinned` : cell.source);
      },
    });
  }
}

function places(what) {
  const table = make("table", "rows places");
  const head = make("tr");
  for (const name of [what, "where", "for", "in flight", "known by"]) head.append(make("th", name === "for" || name === "in flight" ? "n" : "", name));
  table.createTHead().append(head);
  table.createTBody();
  return table;
}

function createPlace(cell, name, to) {
  const node = make("tr");
  const who = make("td");
  const button = make("button", "name", name);
  button.type = "button";
  button.addEventListener("click", () => to(name));
  who.append(button);
  const where = make("td");
  where.append(tierChip(cell.tier, SAID[cell.tier] ?? cell.tier));
  node.age = make("td", "n");
  node.flight = make("td", "n");
  node.how = make("td");
  node.append(who, where, node.age, node.flight, node.how);
  return node;
}

function figuresOf(pod) {
  return [`${rate(pod.swaps)} swaps/s`, `adapters stay ${orDash(pod.residency, span)}`, `useful ${orDash(pod.useful, percent)} of busy time`,
    `found on the GPU ${orDash(pod.hits, percent)}, believed ${orDash(pod.hits_believed, percent)}`, `${pod.in_flight} in flight`,
    `queue ${orDash(pod.queue, whole)} of ${pod.max_queue}`, `KV ${orDash(pod.kv, percent)}`, `GPU ${orDash(pod.gpu, percent)} (${pod.gpu_source})`].join(" · ");
}

function adapterFacts(row, now) {
  return [`${rate(row.requests)} requests/s`, `${percent(row.share)} of all`, `found on the GPU ${orDash(row.hits, percent)}`, `${row.loads} loads and ${row.evictions} evictions in 10 min`,
    `stays ${orDash(row.residency, span)}`, `P95 ${orDash(row.p95, span)}`, `first asked for ${span(now - row.first)} ago`].join(" · ");
}
