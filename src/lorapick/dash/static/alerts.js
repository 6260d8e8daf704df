// The verdict in one line, and the alerts that stand, each with what to do about it.

import { $, keyed, make, setClass, setText, span, words } from "./dom.js";

const TONES = { healthy: ["good", "✓"], idle: ["calm", "·"], warming_up: ["calm", "…"], watch: ["warn", "!"], harmed: ["bad", "✕"], thrash: ["bad", "✕"], no_pods: ["bad", "✕"] };
const KEPT = new Set(["code", "em", "strong"]);

export function drawVerdict({ frame }) {
  const [tone, sign] = TONES[frame.verdict.health] ?? ["calm", "·"];
  setClass($("verdict"), `verdict ${tone}`);
  $("verdict").dataset.health = frame.verdict.health;
  setText($("verdict-sign"), sign);
  setText($("verdict-text"), frame.verdict.text);
}

export function drawAlerts({ alerts, frame }) {
  $("alerts").hidden = alerts.length === 0;
  const ordered = [...alerts].sort((one, other) => (other.severity === "page") - (one.severity === "page"));
  keyed($("alerts"), ordered, { key: (alert) => alert.name, create: createAlert, update: (node, alert) => updateAlert(node, alert, frame.now) });
}

function createAlert(alert) {
  const node = make("details", "alert");
  node.open = alert.severity === "page";
  const head = make("summary");
  node.badge = make("span", "badge");
  node.since = make("span", "note");
  node.facts = make("span", "facts");
  head.append(node.badge, make("b", "", words(alert.name)), node.since, node.facts);
  const steps = make("ol");
  const link = make("a", "runbook", `Runbook: ${words(alert.name)}`);
  link.href = `/runbooks/${encodeURIComponent(alert.name)}`;
  node.append(head, steps, link);
  node.addEventListener("toggle", () => { if (node.open && !steps.children.length) fillSteps(steps, link.href); });
  return node;
}

// What to do first stands in the alert's runbook, under that heading; the page has no second wording of it.
async function fillSteps(list, address) {
  const response = await fetch(address).catch(() => null);
  if (!response?.ok) return; // the link is there; opening it again asks again
  const runbook = new DOMParser().parseFromString(await response.text(), "text/html");
  const heading = [...runbook.querySelectorAll("h2")].find((each) => each.textContent.trim() === "First");
  const steps = heading?.nextElementSibling?.querySelectorAll("li") ?? [];
  list.replaceChildren(...[...steps].map((step) => copied(step, make("li"), response.url)));
}

// Text, code, emphasis and links of a step; whatever else there may be, as its text.
function copied(from, to, address) {
  for (const node of from.childNodes) {
    const tag = node.nodeName.toLowerCase();
    if (node.nodeType === Node.TEXT_NODE) to.append(node.textContent);
    else if (tag === "a") to.append(copied(node, linkTo(node, address), address));
    else if (KEPT.has(tag)) to.append(copied(node, make(tag), address));
    else copied(node, to, address);
  }
  return to;
}

// A runbook's links start at the runbook.
function linkTo(node, address) {
  const target = new URL(node.getAttribute("href") ?? "", address);
  const link = make(/^https?:$/.test(target.protocol) ? "a" : "span");
  if (link.localName === "a") link.href = target.href;
  return link;
}

function updateAlert(node, alert, now) {
  setClass(node, `alert ${alert.severity}`);
  setText(node.badge, alert.severity === "page" ? "✕ page" : "! warning");
  setText(node.since, `for ${span(now - alert.since)}`);
  setText(node.facts, Object.entries(alert.facts).map(([name, value]) => `${words(name)} ${typeof value === "number" ? Number(value.toPrecision(4)) : value}`).join(" · "));
}
