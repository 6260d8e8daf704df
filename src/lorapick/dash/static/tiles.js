// The top line and the totals.

import { $, above, below, dash, keyed, make, orDash, percent, rate, setClass, setText, span, toneOf, whole } from "./dom.js";

const HOUR = 3600;

function tilesOf({ frame, bounds, slo }) {
  const { totals, fleet } = frame;
  const lost = totals.failed + totals.rejected;
  const young = frame.wall - frame.started_at <= HOUR; // who is new is not known yet
  return [
    { name: "requests", unit: "/s", value: rate(fleet.requests_per_second) },
    { name: `found on the GPU (believed ${orDash(fleet.believed_hit_ratio, percent)})`, value: orDash(fleet.hit_ratio, percent), tone: toneOf.hits(fleet.hit_ratio, bounds) },
    { name: "swaps per pod", unit: "/s", value: rate(fleet.swaps_per_second), tone: toneOf.swaps(fleet.swaps_per_second, bounds) },
    { name: "of busy time is useful", value: orDash(fleet.useful_share, percent), tone: toneOf.useful(fleet.useful_share, bounds) },
    { name: "adapters stay", value: orDash(fleet.mean_residency, span), tone: below(fleet.mean_residency, bounds.residency, bounds.residency_page) },
    { name: `P95 latency (P50 ${orDash(fleet.latency_p50, span)}, ${slo.latency_p95 ? `promised ${span(slo.latency_p95)}` : "none promised"})`, value: orDash(fleet.latency_p95, span), tone: slo.latency_p95 ? above(fleet.latency_p95, slo.latency_p95, slo.latency_p95) : "" },
    { name: `active adapters per slot (${fleet.active_adapters} on ${fleet.slots})`, value: orDash(fleet.active_per_slot, rate), tone: above(fleet.active_per_slot, bounds.active_per_slot, 1) },
    young ? { name: "new adapters (known after the first hour)", value: dash } : { name: "new adapters", value: whole(fleet.new_adapters), tone: fleet.new_adapters ? "warn" : "" },
    { name: `in flight (${whole(totals.held)} wait here, ${whole(fleet.swap_queue)} for a load)`, value: whole(totals.in_flight) },
    { name: `failed or refused (since the start ${whole(lost)} of ${whole(totals.arrivals)})`, value: orDash(fleet.error_ratio, share), tone: fleet.error_ratio > bounds.error_ratio ? "bad" : "" },
  ];
}

// Less than a percent of failures is not none.
const share = (ratio) => (ratio > 0 && ratio < 0.0995 ? `${(100 * ratio).toFixed(1)} %` : percent(ratio));

export function drawTiles(model) {
  keyed($("tiles"), tilesOf(model).map((tile, place) => ({ ...tile, place })), {
    key: (tile) => tile.place,
    create: createTile,
    update: (node, tile) => {
      setClass(node, `tile ${tile.tone ?? ""}`);
      setText(node.value, tile.value);
      setText(node.unit, tile.value === dash ? "" : tile.unit ?? "");
      setText(node.name, tile.name);
    },
  });
}

function createTile() {
  const node = make("div");
  const value = make("div", "value");
  node.value = make("span");
  node.unit = make("span", "unit");
  node.name = make("div", "name");
  value.append(node.value, node.unit);
  node.append(value, node.name);
  return node;
}

export function drawTop({ frame }) {
  const facts = [["policy", frame.policy], ["pods ready", `${frame.pods_ready}/${frame.pods_total}`], ["up", span(frame.wall - frame.started_at)]];
  keyed($("facts"), facts, {
    key: ([name]) => name,
    create: ([name]) => {
      const node = make("span", "", `${name} `);
      node.value = make("b");
      node.append(node.value);
      return node;
    },
    update: (node, [, value]) => setText(node.value, value),
  });
}
