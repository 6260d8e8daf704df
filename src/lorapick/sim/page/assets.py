"""Style of the page, as text: the page needs nothing from elsewhere.

Colours: one categorical set, with steps of its own for the dark page; text is never in a series' colour.
"""

STYLE = """
:root { color-scheme: light dark;
  --page: #fcfcfb; --ink: #1c1c1a; --soft: #6b6a63; --rule: #e4e3dd; --panel: #ffffff;
  --p50: #86b6ef; --p95: #2a78d6; --p99: #104281; --mean: #1c1c1a; --pod: #9a9991;
  --inference: #2a78d6; --drain: #eb6834; --transfer: #e34948; --warm: #eda100; --idle: #e9e8e2; --down: #4a3aa7; }
@media (prefers-color-scheme: dark) { :root {
  --page: #161615; --ink: #f2f1ec; --soft: #a09f97; --rule: #34342f; --panel: #1e1e1c;
  --p50: #256abf; --p95: #6da7ec; --p99: #cde2fb; --mean: #f2f1ec; --pod: #6e6d66;
  --inference: #3987e5; --drain: #d95926; --transfer: #e66767; --warm: #c98500; --idle: #2b2b28; --down: #9085e9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1240px; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 17px; margin: 32px 0 8px; } h3 { font-size: 14px; margin: 0 0 4px; }
p { margin: 4px 0; } .soft { color: var(--soft); } ul { margin: 4px 0; padding-left: 20px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 14px 3px 0; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child, td.words, th.words { text-align: left; } td.words { white-space: normal; }
th { font-weight: 600; } td .half { color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 16px; }
figure { margin: 0; padding: 12px; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; }
figure.wide { grid-column: 1 / -1; }
figcaption { margin-bottom: 6px; } svg { width: 100%; height: auto; display: block; }
.key { display: inline-flex; align-items: center; gap: 5px; margin-right: 14px; color: var(--soft); font-size: 12px; }
.key i { width: 12px; height: 12px; border-radius: 2px; } .key i.stroke { height: 3px; }
.tick { fill: var(--soft); font-size: 10px; } .grid { stroke: var(--rule); stroke-width: 1; fill: none; }
.axis { stroke: var(--soft); stroke-width: 1; fill: none; }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.line.p50 { stroke: var(--p50); } .line.p95 { stroke: var(--p95); stroke-width: 2; } .line.p99 { stroke: var(--p99); }
.line.mean { stroke: var(--mean); stroke-width: 2; } .line.pod { stroke: var(--pod); stroke-width: 0.8; opacity: 0.7; }
.area.inference { fill: var(--inference); } .area.drain { fill: var(--drain); }
.area.transfer { fill: var(--transfer); }
.area.warm { fill: var(--warm); } .area.idle { fill: var(--idle); } .area.down { fill: var(--down); }
"""
