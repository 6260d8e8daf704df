// All adapters of the last ten minutes: the hottest or the most evicted first, or by any column.

import { $, make, orDash, percent, rate, setAttribute, setText, span, whole } from "./dom.js";
import { Rows } from "./rows.js";

const NEW_S = 3600;
const FEW = 15; // so many are shown without a scroll bar of their own
const COLUMNS = [
  { id: "name", title: "adapter", of: (row) => row.name, text: (row) => row.name, up: true },
  { id: "pods", title: "on GPU", of: (row) => row.pods, text: (row) => whole(row.pods), said: "pods that have it in a slot" },
  { id: "requests", title: "req/s", of: (row) => row.requests, text: (row) => rate(row.requests), said: "the hottest first" },
  { id: "share", title: "share", of: (row) => row.share, text: (row) => `${(row.share * 100).toFixed(row.share < 0.0995 ? 1 : 0)} %`, said: "of all requests" },
  { id: "hits", title: "hits", of: (row) => row.hits ?? 2, text: (row) => orDash(row.hits, percent), up: true, said: "found on the GPU" },
  { id: "evictions", title: "evicted", of: (row) => row.evictions, text: (row) => whole(row.evictions), said: "the most evicted first" },
  { id: "residency", title: "stays", of: (row) => row.residency ?? Infinity, text: (row) => orDash(row.residency, span), up: true, said: "mean time in a slot" },
  { id: "p95", title: "P95", of: (row) => row.p95 ?? -1, text: (row) => orDash(row.p95, span), said: "latency" },
];

export class Adapters {
  constructor(model, view, open) {
    Object.assign(this, { model, view, sort: "requests" });
    this.rows = new Rows($("adapters-rows"), { height: 30, key: (row) => row.name, create: () => createLine(open), update: (node, row, index) => this.update(node, row, index), keep: (row) => document.activeElement?.dataset.adapter === row.name });
    for (const column of COLUMNS) $("adapters-head").append(this.headOf(column));
  }

  headOf(column) {
    const head = make("span", column.id === "name" ? "" : "n");
    head.setAttribute("role", "columnheader");
    const button = make("button", "", column.title);
    button.type = "button";
    button.id = `sort-${column.id}`;
    button.title = column.said ?? "";
    button.addEventListener("click", () => {
      this.sort = column.id;
      $("adapters-rows").scrollTop = 0;
      this.draw();
    });
    head.append(button);
    return head;
  }

  draw() {
    const rows = [...this.model.adapters.values()].filter((row) => this.view.showsAdapter(row.name)).map((row) => ({ ...row, pods: this.onGpu(row.name) }));
    const { of, up } = COLUMNS.find((column) => column.id === this.sort);
    rows.sort((one, other) => (up ? 1 : -1) * (of(one) > of(other) ? 1 : of(one) < of(other) ? -1 : 0) || (one.name < other.name ? -1 : 1));
    COLUMNS.forEach((column, index) => setAttribute($("adapters-head").children[index], "aria-sort", column.id === this.sort ? (column.up ? "ascending" : "descending") : "none"));
    $("adapters-empty").hidden = rows.length > 0;
    setText($("adapters-note"), this.note(rows.length));
    setAttribute($("adapters"), "aria-rowcount", String(rows.length + 1));
    $("adapters-rows").classList.toggle("few", rows.length <= FEW);
    this.rows.draw(rows);
  }

  note(shown) {
    const { size } = this.model.adapters;
    const total = this.model.adaptersTotal;
    const cut = total > size ? `, the ${whole(size)} with most requests of ${whole(total)}` : "";
    return `${this.view.wanted ? `${shown} of ` : ""}${whole(size)} in the last 10 min${cut}`;
  }

  onGpu(name) {
    let pods = 0;
    for (const cell of this.model.holders.get(name)?.values() ?? []) pods += cell.onGpu;
    return pods;
  }

  update(node, row, index) {
    node.dataset.adapter = row.name;
    node.classList.toggle("lit", this.view.isLit(row.name));
    setAttribute(node, "aria-rowindex", String(index + 2));
    COLUMNS.forEach((column, place) => setText(node.children[place], column.text(row)));
    const { frame } = this.model;
    const watched = frame.wall - frame.started_at > NEW_S;
    node.classList.toggle("new", watched && frame.now - row.first < NEW_S);
    node.title = `${row.name}: ${row.loads} loads, first asked for ${span(frame.now - row.first)} ago`;
  }
}

function createLine(open) {
  const node = make("div", "line");
  node.setAttribute("role", "row");
  node.tabIndex = 0;
  for (const column of COLUMNS) {
    const cell = make("span", column.id === "name" ? "label" : "n");
    cell.setAttribute("role", "cell");
    node.append(cell);
  }
  node.addEventListener("click", () => open.adapter(node.dataset.adapter));
  node.addEventListener("keydown", (event) => {
    const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (event.key === "Enter") open.adapter(node.dataset.adapter);
    else if (next) node[next]?.focus();
    else return;
    event.preventDefault();
  });
  return node;
}
