// The last decisions, one line each.

import { tierChip } from "./chip.js";
import { $, dash, keyed, make, setText, span, words } from "./dom.js";

const SHOWN = 16;
const keyOf = (row) => `${row.request_id} ${row.t} ${row.outcome}`;

export function drawDecisions({ decisions, frame }, view, open) {
  const rows = decisions.filter((row) => view.showsDecision(row)).slice(0, SHOWN);
  $("decisions-empty").hidden = rows.length > 0;
  fillDecisions($("decisions").tBodies[0], rows, { now: frame.now, open });
}

export function fillDecisions(body, rows, { now, open }) {
  keyed(body, rows, { key: keyOf, create: (row) => createDecision(row, open), update: (node, row) => setText(node.ago, span(now - row.t)) });
}

function createDecision(row, open) {
  const node = make("tr", row.explained === false ? "plain" : "");
  node.ago = make("td", "n");
  const was = make("td");
  if (row.outcome === "dispatched") was.append(tierChip(row.tier ?? "base", words(row.tier ?? "base")));
  else was.append(make("span", row.outcome === "held" ? "warn-word" : "bad-word", words(row.reason ?? row.outcome)));
  const score = make("td", "n", row.score === null || row.score === undefined ? dash : row.score.toFixed(3));
  node.append(node.ago, make("td", "", row.model), make("td", "", row.pod ?? dash), was, score);
  node.title = row.request_id;
  if (row.explained === false) return node;
  node.tabIndex = 0;
  node.dataset.request = row.request_id;
  node.addEventListener("click", () => open.decision(row.request_id));
  node.addEventListener("keydown", (event) => {
    if (event.key === "Enter") open.decision(row.request_id);
  });
  return node;
}
