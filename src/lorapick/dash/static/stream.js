// The connection to /v1/stream: goes on trying, and knows whether there is news.

const SILENT_MS = 5000; // frames come every second
const AGAIN_MS = 3000;

// `take(frame)` returns false when it cannot use the frame and needs a whole one; `lost()` is called when the
// connection breaks.
export function follow(url, take, lost) {
  let source = null;
  let broken = false;
  let last = 0;
  let opened = 0;
  let timer = 0;

  function open() {
    clearTimeout(timer);
    source?.close();
    opened = performance.now();
    source = new EventSource(url);
    source.onmessage = (event) => {
      last = performance.now();
      broken = false;
      if (take(JSON.parse(event.data)) === false) open();
    };
    // The browser tries again by itself, but not after an answer such as 503.
    source.onerror = () => {
      broken = true;
      if (source.readyState === EventSource.CLOSED) again();
      lost();
    };
  }

  function again() {
    clearTimeout(timer);
    timer = setTimeout(open, AGAIN_MS);
  }

  // A connection that says nothing may be to a picker that is gone.
  setInterval(() => {
    const now = performance.now();
    if (now - last > SILENT_MS && now - opened > 2 * SILENT_MS) open();
  }, 1000);

  open();
  // Seconds without news; null: there never was any. `live`: they are few enough.
  return () => ({ silent: last ? (performance.now() - last) / 1000 : null, live: last > 0 && !broken && performance.now() - last < SILENT_MS });
}
