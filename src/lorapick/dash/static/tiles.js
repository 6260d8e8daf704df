// The top line and the totals.

import { $, dash, keyed, make, orDash, percent, rate, setClass, setText, span, whole } from "./dom.js";

// Tones follow the alerts' default thresholds; the alerts themselves decide by what is configured.
function below(value, good, fair) {
  return value === null ? "" : value >= good ? "good" : value >= fair ? "warn" : "bad";
}

function above(value, good, fair) {
  return value === null ? "" : value < good ? "good" : value < fair ? "warn" : "bad";
}

function tilesOf({ totals, fleet }) {
  const lost = totals.failed + totals.rejected;
  return [
    { name: "requests", unit: "/s", value: rate(fleet.requests_per_second) },
    { name: `found on the GPU (believed ${orDash(fleet.believed_hit_ratio, percent)})`, value: orDash(fleet.hit_ratio, percent), tone: below(fleet.hit_ratio, 0.9, 0.8) },
    { name: "swaps per pod", unit: "/s", value: rate(fleet.swaps_per_second), tone: above(fleet.swaps_per_second, 0.1, 0.5) },
    { name: "of busy time is useful", value: orDash(fleet.useful_share, percent), tone: below(fleet.useful_share, 0.8, 0.5) },
    { name: "adapters stay", value: orDash(fleet.mean_residency, span), tone: below(fleet.mean_residency, 300, 60) },
    { name: `P95 latency (P50 ${orDash(fleet.latency_p50, span)})`, value: orDash(fleet.latency_p95, span) },
    { name: `active adapters per slot (${fleet.active_adapters} on ${fleet.slots})`, value: orDash(fleet.active_per_slot, rate), tone: above(fleet.active_per_slot, 0.8, 1) },
    { name: "new adapters", value: whole(fleet.new_adapters), tone: fleet.new_adapters ? "warn" : "" },
    { name: `in flight (${whole(totals.held)} wait here, ${whole(fleet.swap_queue)} for a load)`, value: whole(totals.in_flight) },
    { name: `failed or refused, of ${whole(totals.arrivals)}`, value: whole(lost), tone: fleet.error_ratio > 0.01 ? "bad" : "" },
  ];
}

export function drawTiles({ frame }) {
  keyed($("tiles"), tilesOf(frame).map((tile, place) => ({ ...tile, place })), {
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
