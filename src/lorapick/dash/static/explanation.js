// One decision explained: in words where the picker has them, and every pod's part in it.

import { tierChip } from "./chip.js";
import { dash, make, orDash, whole, words } from "./dom.js";

const TERMS = ["adapter", "kv", "queue", "gpu"];

export async function ask(requestId) {
  const response = await fetch(`/v1/decisions/${encodeURIComponent(requestId)}`);
  const answer = await response.json();
  return response.ok ? { answer } : { problem: answer.detail };
}

export function titleOf(answer) {
  const winner = answer.verdicts.find((verdict) => verdict.won);
  return winner ? `${answer.model} went to ${winner.pod}` : `${answer.model}: ${words(answer.reason ?? answer.outcome)}`;
}

export function explain(answer) {
  const parts = [make("p", "note", factsOf(answer))];
  if (answer.words?.length) {
    const said = make("div", "words");
    said.append(...answer.words.map((line) => make("p", "", line)));
    parts.push(said);
  }
  const terms = TERMS.filter((term) => term in answer.weights);
  if (terms.length) {
    const legend = make("p", "legend terms");
    legend.append(...terms.map((term) => make("span", `term-${term}`, `${term} × ${answer.weights[term]}`)));
    parts.push(legend);
  }
  if (answer.verdicts.length) parts.push(tableOf(answer, terms));
  return parts;
}

function factsOf(answer) {
  const facts = [`request ${answer.request_id}`, `policy ${answer.policy}`];
  if (answer.adapter && answer.adapter !== answer.model) facts.push(`adapter ${answer.adapter}`);
  if (answer.fallbacks.length) facts.push(`then ${answer.fallbacks.join(", ")}`);
  if (answer.degraded) facts.push("degraded: taken on old reports, or after a scoring error");
  return facts.join(" · ");
}

function tableOf(answer, terms) {
  const table = make("table", "rows");
  const head = make("tr");
  for (const name of ["pod", "score", "", "tier", "queue", "why not"]) head.append(make("th", name === "score" ? "n" : "", name));
  table.createTHead().append(head);
  const most = Math.max(1, ...answer.verdicts.map((verdict) => verdict.score ?? 0));
  table.createTBody().append(...answer.verdicts.map((verdict) => verdictRow(verdict, terms, most)));
  const scroll = make("div", "scroll");
  scroll.append(table);
  return scroll;
}

function verdictRow(verdict, terms, most) {
  const row = make("tr", verdict.won ? "won" : "");
  const tier = make("td");
  if (verdict.tier) {
    const chip = tierChip(verdict.tier, words(verdict.tier));
    chip.title = verdict.source ?? "";
    tier.append(chip);
  }
  const bars = make("td");
  if (verdict.score !== null && terms.length) bars.append(barsOf(verdict, terms, most));
  const queue = verdict.queue_depth === null ? dash : `${whole(verdict.queue_depth)}/${verdict.max_queue}`;
  const why = verdict.won ? "" : words(verdict.reason ?? "");
  row.append(make("td", "", verdict.pod), make("td", "n", orDash(verdict.score, (score) => score.toFixed(4))), bars, tier, make("td", "", queue), make("td", "", why));
  return row;
}

function barsOf(verdict, terms, most) {
  const bars = make("div", "stack");
  for (const term of terms) {
    const part = verdict.contributions[term];
    if (!part) continue;
    const bar = make("i", `term-${term}`);
    bar.style.width = `${(100 * part) / most}%`;
    bar.title = `${term}: ${part.toFixed(4)}`;
    bars.append(bar);
  }
  return bars;
}
