// The status page: one frame a second from /v1/stream, drawn into index.html.
// Names come from outside and are only ever set as text.
"use strict";

const $ = (id) => document.getElementById(id);
const ON_GPU = ["gpu_serving", "gpu_idle", "loading"];
const TERMS = ["adapter", "kv", "queue", "gpu"];
const HISTORY = 60;
const SWAP_WINDOW = 60;
const HOST_SHOWN = 6;

// -- small helpers

function make(tag, className = "", text = null) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== null) node.textContent = text;
  return node;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setClass(node, name) {
  if (node.className !== name) node.className = name;
}

// Keeps one child for each key, in the order of the keys, so that hovering and focus survive a frame.
function keyed(parent, items, key, create, update) {
  const old = parent.kept ?? (parent.kept = new Map());
  const now = new Map();
  let at = 0;
  for (const item of items) {
    const id = key(item);
    const node = old.get(id) ?? create(item);
    update(node, item);
    if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] ?? null);
    now.set(id, node);
    at += 1;
  }
  for (const [id, node] of old) if (!now.has(id)) node.remove();
  parent.kept = now;
}

const whole = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 0 });
const percent = (ratio) => `${Math.round(ratio * 100)} %`;
const dash = "–";

function span(seconds) {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

// -- totals

const history = [];

// A counter's growth per second over the last `window` seconds; null until there are two frames.
function rateOf(name, window, index = history.length - 1) {
  const last = history[index];
  const first = history.find((point) => point.now >= last.now - window);
  return first.now < last.now ? (last[name] - first[name]) / (last.now - first.now) : null;
}

function remember(fleet) {
  const { now, totals } = fleet;
  const before = history[history.length - 1];
  if (before && (now <= before.now || totals.arrivals < before.arrivals)) history.length = 0; // the picker restarted
  const on = (totals.picks_by_tier.gpu_serving ?? 0) + (totals.picks_by_tier.gpu_idle ?? 0);
  const base = totals.picks_by_tier.base ?? 0;
  history.push({ now, arrivals: totals.arrivals, loads: totals.loads_inferred, on, picks: totals.dispatched - base });
  if (history.length > HISTORY + 1) history.shift();
}

// The thresholds of swaps per second and pod: healthy below 0.1, alert at 0.5.
function swapHealth(rate) {
  return rate === null ? "" : rate < 0.1 ? "good" : rate < 0.5 ? "warn" : "bad";
}

function hitShare() {
  const last = history[history.length - 1];
  const first = history.find((point) => point.now >= last.now - SWAP_WINDOW);
  const picks = last.picks - first.picks;
  return picks > 0 ? (last.on - first.on) / picks : last.picks > 0 ? last.on / last.picks : null;
}

function tilesOf(fleet) {
  const totals = fleet.totals;
  const perSecond = rateOf("arrivals", 5);
  const pods = Math.max(1, fleet.pods.length);
  const loads = rateOf("loads", SWAP_WINDOW);
  const swaps = loads === null ? null : loads / pods;
  const hits = hitShare();
  const lost = totals.failed + totals.rejected;
  return [
    { name: "requests", unit: "/s", value: perSecond === null ? dash : perSecond.toFixed(1), line: "arrivals" },
    { name: "picked on the GPU", value: hits === null ? dash : percent(hits), tone: hits === null ? "" : hits >= 0.9 ? "good" : hits >= 0.8 ? "warn" : "bad" },
    { name: "loads, last min", unit: "/s/pod", value: swaps === null ? dash : swaps.toFixed(2), tone: swapHealth(swaps), line: "loads" },
    { name: "in flight", value: whole(totals.in_flight) },
    { name: "held", value: whole(totals.held) },
    { name: "served", value: whole(totals.served) },
    { name: "failed or refused", value: whole(lost), tone: lost ? "bad" : "" },
    { name: "clients left", value: whole(totals.abandoned) },
  ];
}

function drawTiles(fleet) {
  keyed($("tiles"), tilesOf(fleet), (tile) => tile.name, createTile, (node, tile) => {
    setClass(node, `tile ${tile.tone ?? ""}`);
    setText(node.value, tile.value);
    if (tile.line) node.line.setAttribute("points", sparkline(tile.line));
  });
}

function createTile(tile) {
  const node = make("div");
  const value = make("div", "value");
  node.value = make("span");
  value.append(node.value);
  if (tile.unit) value.append(make("span", "unit", tile.unit));
  node.append(value, make("div", "name", tile.name));
  if (tile.line) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${HISTORY} 26`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    node.line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    svg.append(node.line);
    node.append(svg);
  }
  return node;
}

function sparkline(name) {
  const rates = history.slice(1).map((point, index) => (point[name] - history[index][name]) / (point.now - history[index].now));
  const top = Math.max(...rates, 1e-9);
  const left = HISTORY - rates.length;
  return rates.map((rate, index) => `${left + index},${(25 - 23 * (rate / top)).toFixed(1)}`).join(" ");
}

// -- pods

const seats = new Map(); // pod -> adapters by slot: an adapter keeps its place while it stays

function seat(pod, cells) {
  const places = seats.get(pod.name) ?? [];
  const here = new Map(cells.map((cell) => [cell.adapter, cell]));
  const seated = [];
  for (let index = 0; index < Math.max(pod.slots, places.length); index += 1) {
    const adapter = places[index];
    seated.push(here.has(adapter) ? adapter : null);
    if (here.has(adapter)) here.delete(adapter);
  }
  for (const adapter of here.keys()) {
    const free = seated.indexOf(null);
    if (free < 0) seated.push(adapter);
    else seated[free] = adapter;
  }
  while (seated.length > pod.slots && seated[seated.length - 1] === null) seated.pop();
  seats.set(pod.name, seated);
  return seated;
}

function drawPods(frame) {
  const cells = new Map();
  for (const cell of frame.cells) {
    if (!cells.has(cell.pod)) cells.set(cell.pod, []);
    cells.get(cell.pod).push(cell);
  }
  keyed($("pods"), frame.fleet.pods, (pod) => pod.name, createPod, (node, pod) =>
    updatePod(node, pod, cells.get(pod.name) ?? [], frame.fleet.now));
  const more = frame.pods_total - frame.fleet.pods.length;
  $("pods-more").hidden = more <= 0 && frame.pods_total > 0;
  setText($("pods-more"), more > 0 ? `${more} more pods are not shown; /v1/fleet lists all.` : "No pod yet: discovery has found none.");
}

function createPod(pod) {
  const node = make("div", "pod");
  const who = make("div", "who");
  node.state = make("div", "state");
  who.append(make("b", "", pod.name), node.state);
  node.slots = make("div", "slots");
  node.host = make("div", "host");
  node.more = make("span", "note");
  const figures = make("div", "figures");
  node.meters = ["queue", "in flight", "GPU", "KV"].map((name) => createMeter(name));
  figures.append(...node.meters);
  node.append(who, node.slots, node.host, figures);
  return node;
}

function createMeter(name) {
  const node = make("div", "meter");
  const text = make("div", "text");
  node.number = make("b");
  text.append(make("span", "", name), node.number);
  const bar = make("div", "bar");
  node.fill = make("div", "fill");
  bar.append(node.fill);
  node.append(text, bar);
  return node;
}

function updatePod(node, pod, cells, now) {
  setClass(node, pod.ready ? "pod" : "pod out");
  setText(node.state, stateOf(pod));
  node.title = pod.last_error ? `${pod.address}: ${pod.last_error}` : pod.address;
  const byName = new Map(cells.map((cell) => [cell.adapter, cell]));
  node.slots.style.setProperty("--columns", Math.min(4, Math.max(1, pod.slots)));
  const seated = seat(pod, cells.filter((cell) => ON_GPU.includes(cell.tier)));
  keyed(node.slots, seated.map((adapter, index) => ({ adapter, index })), (place) => place.index, () => createChip(), (chip, place) =>
    updateSlot(chip, place.adapter, byName.get(place.adapter), now));
  updateHost(node, cells.filter((cell) => cell.tier === "cpu"), now);
  const [queue, flight, gpu, kv] = node.meters;
  meter(queue, pod.queue_depth, pod.max_queue, pod.queue_depth === null ? dash : `${whole(pod.queue_depth)}/${pod.max_queue}`);
  meter(flight, pod.in_flight, Math.max(pod.max_queue, pod.in_flight), whole(pod.in_flight), false);
  meter(gpu, pod.gpu_utilization, 1, pod.gpu_utilization === null ? dash : percent(pod.gpu_utilization), false);
  gpu.title = `source: ${pod.gpu_source}`;
  meter(kv, pod.kv_usage, 1, pod.kv_usage === null ? dash : percent(pod.kv_usage));
}

function updateHost(node, cells, now) {
  const shown = cells.length > HOST_SHOWN ? cells.slice(0, HOST_SHOWN - 1) : cells;
  const rest = cells.slice(shown.length);
  keyed(node.host, shown, (cell) => cell.adapter, createChip, (chip, cell) => updateChip(chip, cell, now));
  setText(node.more, rest.length ? `+${rest.length}` : "");
  node.more.title = rest.map((cell) => cell.adapter).join(", ");
  if (node.host.lastChild !== node.more) node.host.append(node.more);
}

function stateOf(pod) {
  const parts = pod.ready ? [] : [(pod.reason ?? "not ready").replaceAll("_", " ")];
  parts.push(pod.scrape_age_s === null ? "never scraped" : `scraped ${span(pod.scrape_age_s)} ago`);
  if (pod.restarts) parts.push(`${pod.restarts} restart${pod.restarts > 1 ? "s" : ""}`);
  return parts.join(" · ");
}

function meter(node, value, most, text, warns = true) {
  const share = value === null ? 0 : Math.min(1, value / most);
  setText(node.number, text);
  node.fill.style.width = `${(share * 100).toFixed(0)}%`;
  setClass(node, !warns || share < 0.75 ? "meter" : share < 1 ? "meter high" : "meter full");
}

function createChip() {
  const chip = make("span", "chip");
  chip.label = make("span", "label");
  chip.count = make("span", "count");
  chip.append(chip.label, chip.count);
  return chip;
}

function updateSlot(chip, adapter, cell, now) {
  const changed = chip.adapter !== undefined && chip.adapter !== adapter && adapter !== null;
  chip.adapter = adapter;
  if (cell) updateChip(chip, cell, now, changed || (chip.classList.contains("fresh") && cell.tier === "loading"));
  else {
    setClass(chip, "chip free");
    delete chip.dataset.adapter;
    chip.title = "free slot";
    setText(chip.label, "free");
    setText(chip.count, "");
  }
}

function updateChip(chip, cell, now, fresh = false) {
  const lit = cell.adapter === chosen ? " lit" : "";
  setClass(chip, `chip ${cell.tier}${cell.pinned ? " pinned" : ""}${fresh ? " fresh" : ""}${lit}`);
  chip.dataset.adapter = cell.adapter;
  chip.title = `${cell.adapter}: ${cell.tier.replaceAll("_", " ")} for ${span(now - cell.since)}, ${cell.source}`;
  setText(chip.label, cell.adapter);
  setText(chip.count, cell.in_flight ? String(cell.in_flight) : "");
}

// -- one adapter lit wherever it is

let chosen = null;

function light(adapter) {
  chosen = adapter;
  $("main").classList.toggle("same", adapter !== null);
  for (const chip of document.querySelectorAll(".chip")) chip.classList.toggle("lit", adapter !== null && chip.dataset.adapter === adapter);
}

document.addEventListener("pointerover", (event) => {
  const chip = event.target.closest?.("[data-adapter]");
  const adapter = chip ? chip.dataset.adapter : null;
  if (adapter !== chosen) light(adapter);
});

// -- adapters and decisions

function drawAdapters(frame) {
  const used = frame.adapters.filter((row) => row.requests || Object.keys(row.pods).length);
  const shown = used.slice(0, 15);
  $("adapters-empty").hidden = shown.length > 0;
  setText($("adapters-note"), frame.adapters_total > shown.length ? `the ${shown.length} with most requests, of ${frame.adapters_total}` : "");
  keyed($("adapters").tBodies[0], shown, (row) => row.name, createAdapter, (node, row) => {
    keyed(node.where, [...ON_GPU, "cpu"].filter((tier) => row.pods[tier]?.length), (tier) => tier, (tier) => make("span", `chip ${tier}`), (chip, tier) => {
      setText(chip, String(row.pods[tier].length));
      chip.title = `${tier.replaceAll("_", " ")}: ${row.pods[tier].join(", ")}`;
    });
    setText(node.flight, row.in_flight ? String(row.in_flight) : dash);
    setText(node.requests, whole(row.requests));
  });
}

function createAdapter(row) {
  const node = make("tr");
  const name = make("td", "", row.name);
  name.dataset.adapter = row.name;
  name.title = row.declared ? row.name : `${row.name} (not declared)`;
  const where = make("td");
  node.where = make("div", "where");
  where.append(node.where);
  node.flight = make("td", "n");
  node.requests = make("td", "n");
  node.append(name, where, node.flight, node.requests);
  return node;
}

function drawDecisions(frame) {
  const rows = frame.decisions.slice(0, 15);
  $("decisions-empty").hidden = rows.length > 0;
  const key = (row) => `${row.request_id} ${row.t} ${row.outcome}`;
  keyed($("decisions").tBodies[0], rows, key, createDecision, (node, row) => setText(node.ago, span(frame.fleet.now - row.t)));
}

function createDecision(row) {
  const node = make("tr", row.explained ? "" : "plain");
  node.ago = make("td", "n");
  const was = make("td");
  if (row.outcome === "dispatched") was.append(make("span", `chip ${row.tier ?? "base"}`, (row.tier ?? "base").replaceAll("_", " ")));
  else was.append(make("span", row.outcome === "held" ? "warn-word" : "bad-word", (row.reason ?? row.outcome).replaceAll("_", " ")));
  const score = make("td", "n", row.score === null ? dash : row.score.toFixed(3));
  node.append(node.ago, make("td", "", row.model), make("td", "", row.pod ?? dash), was, score);
  node.title = row.request_id;
  if (!row.explained) return node;
  node.tabIndex = 0;
  node.setAttribute("role", "button");
  node.addEventListener("click", () => explain(row.request_id));
  node.addEventListener("keydown", (event) => {
    if (event.key === "Enter") explain(row.request_id);
  });
  return node;
}

// -- one decision explained

async function explain(requestId) {
  const response = await fetch(`/v1/decisions/${encodeURIComponent(requestId)}`);
  const answer = await response.json();
  $("why-table").tHead.replaceChildren();
  $("why-table").tBodies[0].replaceChildren();
  $("why-legend").replaceChildren();
  if (response.ok) drawExplanation(answer);
  else {
    setText($("why-title"), requestId);
    setText($("why-facts"), answer.detail);
  }
  if (!$("why").open) $("why").showModal();
}

function drawExplanation(answer) {
  const winner = answer.verdicts.find((verdict) => verdict.won);
  const reason = (answer.reason ?? answer.outcome).replaceAll("_", " ");
  setText($("why-title"), winner ? `${answer.model} went to ${winner.pod}` : `${answer.model}: ${reason}`);
  const facts = [`request ${answer.request_id}`, `policy ${answer.policy}`];
  if (answer.adapter && answer.adapter !== answer.model) facts.push(`adapter ${answer.adapter}`);
  if (answer.fallbacks.length) facts.push(`then ${answer.fallbacks.join(", ")}`);
  if (answer.degraded) facts.push("degraded: taken on old reports, or after a scoring error");
  setText($("why-facts"), facts.join(" · "));
  const terms = TERMS.filter((term) => term in answer.weights);
  $("why-legend").replaceChildren(...terms.map((term) => make("span", `term-${term}`, `${term} × ${answer.weights[term]}`)));
  const head = make("tr");
  for (const name of ["pod", "score", "", "tier", "queue", "why not"]) head.append(make("th", name === "score" ? "n" : "", name));
  $("why-table").tHead.append(head);
  const most = Math.max(1, ...answer.verdicts.map((verdict) => verdict.score ?? 0));
  $("why-table").tBodies[0].append(...answer.verdicts.map((verdict) => verdictRow(verdict, terms, most)));
}

function verdictRow(verdict, terms, most) {
  const row = make("tr", verdict.won ? "won" : "");
  const bars = make("div", "stack");
  for (const term of terms) {
    const part = verdict.contributions[term];
    if (!part) continue;
    const bar = make("i", `term-${term}`);
    bar.style.width = `${(100 * part) / most}%`;
    bar.title = `${term}: ${part.toFixed(4)}`;
    bars.append(bar);
  }
  const tier = make("td");
  if (verdict.tier) {
    const chip = make("span", `chip ${verdict.tier}`, verdict.tier.replaceAll("_", " "));
    chip.title = verdict.source ?? "";
    tier.append(chip);
  }
  const stack = make("td");
  if (verdict.score !== null && terms.length) stack.append(bars);
  const queue = verdict.queue_depth === null ? dash : `${whole(verdict.queue_depth)}/${verdict.max_queue}`;
  const why = verdict.won ? "" : (verdict.reason ?? "").replaceAll("_", " ");
  row.append(make("td", "", verdict.pod), make("td", "n", verdict.score === null ? dash : verdict.score.toFixed(4)), stack, tier, make("td", "", queue), make("td", "", why));
  return row;
}

// -- the stream

function drawTop(fleet) {
  const ready = fleet.pods.filter((pod) => pod.ready).length;
  const facts = [["policy", fleet.policy], ["pods ready", `${ready}/${fleet.pods.length}`], ["up", span(fleet.wall - fleet.started_at)]];
  keyed($("facts"), facts, ([name]) => name, ([name]) => {
    const node = make("span", "", `${name} `);
    node.value = make("b");
    node.append(node.value);
    return node;
  }, (node, [, value]) => setText(node.value, value));
}

function drawAlerts(alerts, now) {
  $("alerts").hidden = alerts.length === 0;
  keyed($("alerts"), alerts, (alert) => alert.name, () => make("p"), (node, alert) => {
    const facts = Object.entries(alert.facts).map(([name, value]) => `${name} ${value}`);
    setText(node, [`${alert.name.replaceAll("_", " ")} for ${span(now - alert.since)}`, ...facts].join(" · "));
  });
}

let lastFrame = 0;

function draw(frame) {
  lastFrame = performance.now();
  remember(frame.fleet);
  drawTop(frame.fleet);
  drawAlerts(frame.alerts, frame.fleet.now);
  drawTiles(frame.fleet);
  drawPods(frame);
  drawAdapters(frame);
  drawDecisions(frame);
}

function watchLink() {
  const live = performance.now() - lastFrame < 4000 && lastFrame > 0;
  setClass($("link"), live ? "link live" : "link lost");
  setText($("link"), live ? "live" : lastFrame ? "no news from the picker" : "connecting");
  $("main").classList.toggle("stale", !live && lastFrame > 0);
}

const stream = new EventSource("/v1/stream");
stream.onmessage = (event) => {
  draw(JSON.parse(event.data));
  watchLink();
};
stream.onerror = () => {
  // The browser tries again by itself, but not after an answer such as 503.
  if (stream.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
};
setInterval(watchLink, 1000);
