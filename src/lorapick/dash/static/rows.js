// Rows of one height, of which only those in sight are in the document.

import { make } from "./dom.js";

const BEYOND = 3; // rows kept ready above and below

export class Rows {
  // `create()` makes an element, `update(element, item, index)` fills it; `keep(item)` is for rows that hold the focus.
  constructor(viewport, { height, key, create, update, keep = () => false, role = "presentation" }) {
    Object.assign(this, { viewport, height, key, create, update, keep, items: [], shown: new Map() });
    this.inner = make("div", "rows-inner");
    this.inner.setAttribute("role", role);
    viewport.append(this.inner);
    viewport.addEventListener("scroll", () => this.draw(this.items), { passive: true });
    new ResizeObserver(() => this.draw(this.items)).observe(viewport);
  }

  draw(items) {
    this.items = items;
    this.inner.style.height = `${items.length * this.height}px`;
    const first = Math.max(0, Math.floor(this.viewport.scrollTop / this.height) - BEYOND);
    const last = Math.min(items.length, Math.ceil((this.viewport.scrollTop + this.viewport.clientHeight) / this.height) + BEYOND);
    const now = new Map();
    const focus = this.inner.contains(document.activeElement) ? document.activeElement : null;
    for (let index = 0; index < items.length; index += 1) {
      const item = items[index];
      if ((index < first || index >= last) && !this.keep(item)) continue;
      const node = this.shown.get(this.key(item)) ?? this.create(item);
      now.set(this.key(item), node);
      const place = `translateY(${index * this.height}px)`;
      if (node.style.transform !== place) node.style.transform = place;
      this.update(node, item, index);
    }
    for (const [id, node] of this.shown) if (now.get(id) !== node) node.remove();
    this.shown = now;
    this.arrange([...now.values()]);
    if (focus && focus !== document.activeElement && this.inner.contains(focus)) focus.focus({ preventScroll: true });
  }

  // The order of the document is what Tab and screen readers follow.
  arrange(nodes) {
    nodes.forEach((node, at) => {
      if (this.inner.children[at] !== node) this.inner.insertBefore(node, this.inner.children[at] ?? null);
    });
  }

  // Makes a row visible; then it is in the document.
  reveal(index) {
    const top = index * this.height;
    const { viewport } = this;
    if (top < viewport.scrollTop) viewport.scrollTop = top;
    else if (top + this.height > viewport.scrollTop + viewport.clientHeight) viewport.scrollTop = top + this.height - viewport.clientHeight;
    this.draw(this.items);
  }
}
