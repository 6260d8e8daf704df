// What the page knows: the frames of /v1/stream laid over one another (see docs/page.md). No elements in here.

export const TIERS = ["unregistered", "disk", "cpu", "loading", "gpu_idle", "gpu_serving"];
export const MARKS = { cpu: "H", loading: "L", gpu_idle: "I", gpu_serving: "S", free: "–" };
export const SAID = { cpu: "in host memory", loading: "loading", gpu_idle: "idle on the GPU", gpu_serving: "serving" };
const LOADING = 3;
const MOST_DECISIONS = 50;
const MOST_POINTS = 720;
const LEAST_POD = { queue: null, gpu: null, kv: null, useful: null, hits: null, hits_believed: null, residency: null, scraped_s: null,
  in_flight: 0, swaps: 0, restarts: 0, swap_queue: 0, reason: null, error: null, loading: 0, critical: false, pressure: null, gpu_source: "unknown", role: "both", reserved: 0, prefill_tokens: 0 };

export function emptyModel() {
  return { frame: null, names: [], pods: new Map(), cells: new Map(), seats: new Map(), holders: new Map(), adapters: new Map(), points: [], decisions: [], alerts: [], bounds: {}, slo: {}, adaptersTotal: 0, started: null, restarted: false };
}

// Lays a frame over the model. False: a frame is missing, and only a whole one can help.
export function lay(model, frame) {
  if (frame.whole) begin(model, frame);
  else if (model.frame === null || frame.seq !== model.frame.seq + 1) return false;
  model.frame = frame;
  for (const name of frame.names ?? []) model.names.push(name);
  for (const name of frame.pods_gone ?? []) forgetPod(model, name);
  for (const pod of frame.pods ?? []) model.pods.set(pod.name, { ...LEAST_POD, ...pod });
  for (const [pod, lines] of Object.entries(frame.cells ?? {})) putCells(model, pod, { slots: lines });
  for (const [pod, lines] of Object.entries(frame.host ?? {})) putCells(model, pod, { host: lines });
  for (const place of frame.adapters_gone ?? []) model.adapters.delete(model.names[place]);
  for (const line of frame.adapters ?? []) putAdapter(model, line);
  for (const [t, swaps, requests, hits, p95, useful, active, residency] of frame.points ?? []) model.points.push({ t, swaps, requests, hits, p95, useful, active, residency });
  if (model.points.length > MOST_POINTS) model.points.splice(0, model.points.length - MOST_POINTS);
  if (frame.decisions) model.decisions = [...frame.decisions, ...model.decisions].slice(0, MOST_DECISIONS);
  if (frame.adapters_total !== undefined && frame.adapters_total !== null) model.adaptersTotal = frame.adapters_total;
  if (frame.alerts) model.alerts = frame.alerts;
  if (frame.bounds) Object.assign(model, { bounds: frame.bounds, slo: frame.slo ?? {} });
  return true;
}

function begin(model, frame) {
  const restarted = model.started !== null && Math.abs(frame.started_at - model.started) > 0.5;
  const seats = restarted ? new Map() : model.seats;
  Object.assign(model, emptyModel(), { seats, started: frame.started_at, restarted });
}

function forgetPod(model, name) {
  putCells(model, name, { slots: [], host: [] });
  model.pods.delete(name);
  model.cells.delete(name);
  model.seats.delete(name);
}

// Host memory is told less often than slots: what stands in both is in a slot by now.
function putCells(model, pod, { slots, host }) {
  const before = model.cells.get(pod) ?? [];
  for (const cell of before) model.holders.get(cell.adapter)?.delete(pod);
  const read = ([place, tier, since, source, inFlight, pinned]) => ({ adapter: model.names[place], pod, tier: TIERS[tier], onGpu: tier >= LOADING, since, source, inFlight, pinned });
  const onGpu = slots?.map(read) ?? before.filter((cell) => cell.onGpu);
  const there = new Set(onGpu.map((cell) => cell.adapter));
  const rest = (host?.map(read) ?? before.filter((cell) => !cell.onGpu)).filter((cell) => !there.has(cell.adapter));
  const cells = [...onGpu, ...rest];
  for (const cell of cells) {
    if (!model.holders.has(cell.adapter)) model.holders.set(cell.adapter, new Map());
    model.holders.get(cell.adapter).set(pod, cell);
  }
  model.cells.set(pod, cells);
  model.seats.set(pod, seated(model.seats.get(pod) ?? [], onGpu));
}

// An adapter keeps its place while it stays; who comes takes the first free one.
function seated(before, cells) {
  const here = new Map(cells.map((cell) => [cell.adapter, cell]));
  const now = before.map((old) => {
    const cell = old && here.get(old.adapter);
    if (cell) here.delete(old.adapter);
    return cell ?? null;
  });
  for (const cell of here.values()) {
    const free = now.indexOf(null);
    if (free < 0) now.push(cell);
    else now[free] = cell;
  }
  while (now.length && now[now.length - 1] === null) now.pop();
  return now;
}

// The pod's slots in order; null: free. More than it has slots only where more are believed to be there.
export function seatsOf(model, pod) {
  const seats = model.seats.get(pod.name) ?? [];
  return seats.length >= pod.slots ? seats : [...seats, ...Array(pod.slots - seats.length).fill(null)];
}

export const hostOf = (model, pod) => (model.cells.get(pod.name) ?? []).filter((cell) => cell.tier === "cpu");

function putAdapter(model, [place, requests, share, hits, loads, evictions, residency, p95, first]) {
  const name = model.names[place];
  model.adapters.set(name, { name, requests, share, hits, loads, evictions, residency, p95, first });
}

// Wall-clock time of an instant on the picker's clock.
export const wallOf = (model, t) => t + model.frame.wall - model.frame.now;
