// Colours before the first paint: what was chosen here last, else as the system has them. No module, so that it runs at once.
"use strict";
try {
  const kept = localStorage.getItem("lorapick-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* storage is forbidden: as the system has them */ }
