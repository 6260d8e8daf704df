// The status page: frames of /v1/stream, drawn into index.html.

import { Adapters } from "./adapters.js";
import { drawAlerts, drawVerdict } from "./alerts.js";
import { Card } from "./card.js";
import { Charts } from "./charts.js";
import { drawDecisions } from "./decisions.js";
import { $, age, clock, setClass, setText } from "./dom.js";
import { Grid } from "./grid.js";
import { emptyModel, lay } from "./model.js";
import { follow } from "./stream.js";
import { drawTiles, drawTop } from "./tiles.js";

const NOTICE_S = 60;
const THEMES = ["auto", "light", "dark"];

const model = emptyModel();

// What is looked for, and what the pointer is on.
const view = {
  wanted: "",
  hovered: null,
  fits: (name) => name.toLowerCase().includes(view.wanted),
  isLit: (adapter) => adapter === view.hovered || (view.wanted !== "" && view.fits(adapter)),
  showsAdapter: (name) => view.wanted === "" || view.fits(name),
  showsPod: (pod) => view.wanted === "" || view.fits(pod.name) || (model.cells.get(pod.name) ?? []).some((cell) => view.fits(cell.adapter)),
  showsDecision: (row) => view.wanted === "" || [row.model, row.adapter ?? "", row.pod ?? ""].some(view.fits),
};

const card = new Card(model);
const grid = new Grid(model, view, card.open);
const charts = new Charts(model);
const adapters = new Adapters(model, view, card.open);

let paused = null; // since when, on this page's clock

function draw() {
  if (model.frame === null || document.hidden) return;
  $("main").classList.remove("waiting"); // before the first frame there is nothing to say of the fleet
  drawTop(model);
  drawVerdict(model);
  drawAlerts(model);
  drawTiles(model);
  charts.draw();
  grid.draw();
  adapters.draw();
  drawDecisions(model, view, card.open);
  card.draw();
}

function notice(text) {
  setText($("notice"), text);
  $("notice").hidden = false;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { $("notice").hidden = true; }, NOTICE_S * 1000);
}

const news = follow("/v1/stream", (frame) => {
  if (!lay(model, frame)) return false;
  if (frame.whole && model.restarted) notice(`The picker restarted at ${clock(frame.started_at)}; it counts anew, and learns anew what is where.`);
  if (paused === null) draw();
  watchLink();
  return true;
}, () => watchLink());

function watchLink() {
  const { live, silent } = news();
  setClass($("link"), paused !== null ? "link paused" : live ? "link live" : "link lost");
  setText($("link"), paused !== null ? `paused for ${age((performance.now() - paused) / 1000)}` : live ? "live" : silent === null ? "connecting" : `no news for ${age(silent)}; trying again`);
  $("main").classList.toggle("stale", !live && silent !== null);
}

function pause() {
  paused = paused === null ? performance.now() : null;
  $("pause").setAttribute("aria-pressed", String(paused !== null));
  setText($("pause"), paused === null ? "Pause" : "Go on");
  if (paused === null) draw();
  watchLink();
}

function chooseTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText($("theme"), `Theme: ${theme}`);
  try {
    localStorage.setItem("lorapick-theme", theme);
  } catch { /* storage is forbidden: it holds until the page is left */ }
}

const themeNow = () => document.documentElement.dataset.theme ?? "auto";

function search() {
  view.wanted = $("search").value.trim().toLowerCase();
  $("main").classList.toggle("searching", view.wanted !== "");
  draw();
}

$("pause").addEventListener("click", pause);
$("theme").addEventListener("click", () => chooseTheme(THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length]));
$("search").addEventListener("input", search);
$("order").addEventListener("change", draw);
document.addEventListener("visibilitychange", () => { if (paused === null) draw(); });
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea") || $("card").open;
  if (event.key === "Escape" && event.target === $("search")) {
    $("search").value = "";
    search();
    $("search").blur();
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "/") {
    event.preventDefault();
    $("search").focus();
  } else if (event.key === "p") pause();
});
document.addEventListener("pointerover", (event) => {
  const adapter = event.target.closest?.("[data-adapter]")?.dataset.adapter ?? null;
  if (adapter === view.hovered) return;
  view.hovered = adapter;
  $("main").classList.toggle("same", adapter !== null);
  for (const chip of document.querySelectorAll(".slots .chip, .lines .line")) chip.classList.toggle("lit", chip.dataset.adapter !== undefined && view.isLit(chip.dataset.adapter));
});
setText($("theme"), `Theme: ${themeNow()}`);
setInterval(watchLink, 1000);
