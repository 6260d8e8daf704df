// Lines over the last hour. Each has its scale, the bound of its alert as configured, and a reading under the pointer.

import { $, clock, drawing, make, orDash, percent, rate, setAttribute, setText, span } from "./dom.js";
import { wallOf } from "./model.js";

const WIDTH = 320;
const HEIGHT = 96;
const LEFT = 40;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 16;
const HOUR = 3600;
const LEAST = 300;

const CHARTS = [
  { name: "swaps/s per pod", of: (point) => point.swaps, say: rate, least: 0.2, bound: ({ bounds }) => bounds.swap_rate, word: "alert from" },
  { name: "P95 latency", of: (point) => point.p95, say: span, least: 1, bound: ({ slo }) => slo.latency_p95, word: "promised" },
  { name: "useful share of busy time", of: (point) => point.useful, say: percent, most: 1, bound: ({ bounds }) => bounds.useful_share, word: "alert below" },
  { name: "found on the GPU", of: (point) => point.hits, say: percent, most: 1, bound: ({ bounds }) => bounds.hit_ratio, word: "alert below" },
];

export class Charts {
  constructor(model) {
    this.model = model;
    this.drawn = null;
    this.charts = CHARTS.map((chart) => ({ ...chart, ...createChart(chart) }));
    $("charts").append(...this.charts.map((chart) => chart.figure));
    for (const { svg } of this.charts) {
      svg.addEventListener("pointermove", (event) => this.read(event));
      svg.addEventListener("pointerleave", () => this.unread());
    }
  }

  draw() {
    const { points } = this.model;
    const last = points[points.length - 1] ?? null;
    if (last === this.drawn) return;
    this.drawn = last;
    for (const chart of this.charts) this.drawChart(chart, points, last);
  }

  drawChart(chart, points, last) {
    const values = points.map(chart.of).filter((value) => value !== null);
    setText(chart.value, orDash(last && chart.of(last), chart.say));
    const summary = values.length ? `now ${orDash(chart.of(last), chart.say)}, between ${chart.say(Math.min(...values))} and ${chart.say(Math.max(...values))} in the time shown` : "no figures yet";
    setAttribute(chart.svg, "aria-label", `${chart.name}: ${summary}`);
    if (last === null) return chart.plot.replaceChildren();
    this.from = Math.min(last.t - LEAST, Math.max(points[0].t, last.t - HOUR));
    this.to = last.t;
    const bound = chart.bound(this.model);
    const top = chart.most ?? nice(Math.max(chart.least, ...values));
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(1, value / top));
    chart.plot.replaceChildren(
      ...[0, top / 2, top].flatMap((value) => tick(value, y(value), chart.say)),
      ...this.times(),
      drawing("path", { class: "line", d: path(points.filter((point) => point.t >= this.from), (point) => this.x(point.t), (point) => chart.of(point), y) }),
      ...(bound && bound < top ? threshold(`${chart.word} ${chart.say(bound)}`, y(bound)) : []),
    );
    return undefined;
  }

  x(t) {
    return LEFT + ((WIDTH - LEFT - RIGHT) * (t - this.from)) / (this.to - this.from);
  }

  times() {
    return [this.from, this.to].map((t, index) => {
      const text = drawing("text", { class: "tick", x: index ? WIDTH - RIGHT : LEFT, y: HEIGHT - 4, "text-anchor": index ? "end" : "start" });
      text.textContent = clock(wallOf(this.model, t)).slice(0, 5);
      return text;
    });
  }

  read(event) {
    const { points } = this.model;
    if (!points.length || this.from === undefined) return;
    const box = event.currentTarget.getBoundingClientRect();
    const t = this.from + (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT) * (this.to - this.from);
    const near = points.reduce((best, point) => (Math.abs(point.t - t) < Math.abs(best.t - t) ? point : best));
    for (const chart of this.charts) {
      setText(chart.reading, `${clock(wallOf(this.model, near.t))}: ${orDash(chart.of(near), chart.say)}`);
      chart.cross.setAttribute("d", `M${this.x(near.t).toFixed(1)} ${TOP}V${HEIGHT - BOTTOM}`);
    }
  }

  unread() {
    for (const chart of this.charts) {
      setText(chart.reading, "");
      chart.cross.setAttribute("d", "");
    }
  }
}

function createChart({ name }) {
  const figure = make("figure", "chart");
  const caption = make("figcaption");
  const value = make("b");
  const reading = make("span", "reading");
  caption.append(make("span", "", name), reading, value);
  const svg = drawing("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const plot = drawing("g");
  const cross = drawing("path", { class: "cross", d: "" });
  svg.append(plot, cross);
  figure.append(caption, svg);
  return { figure, value, reading, svg, plot, cross };
}

function tick(value, y, say) {
  const text = drawing("text", { class: "tick", x: LEFT - 5, y: y + 3, "text-anchor": "end" });
  text.textContent = say(value);
  return [drawing("path", { class: "rule", d: `M${LEFT} ${y.toFixed(1)}H${WIDTH - RIGHT}` }), text];
}

// The word stands on the side of its line where figures are not while all is well.
function threshold(word, y) {
  const below = word.includes("below") || y < TOP + 9;
  const text = drawing("text", { class: "bound", x: WIDTH - RIGHT, y: below ? y + 9 : y - 3, "text-anchor": "end" });
  text.textContent = word;
  return [drawing("path", { class: "threshold", d: `M${LEFT} ${y.toFixed(1)}H${WIDTH - RIGHT}` }), text];
}

// Where nothing is known, the line has a gap.
function path(points, x, of, y) {
  let up = true;
  const parts = [];
  for (const point of points) {
    const value = of(point);
    if (value === null) up = true;
    else {
      parts.push(`${up ? "M" : "L"}${x(point).toFixed(1)} ${y(value).toFixed(1)}`);
      up = false;
    }
  }
  if (parts.length === 1) parts.push("h1");
  return parts.join("");
}

function nice(value) {
  const scale = 10 ** Math.floor(Math.log10(value));
  return scale * [1, 2, 5, 10].find((step) => step * scale >= value * 0.999);
}
