"use strict";
// The clock of every poll. An element with `data-live` is brought up to date by htmx
// (its hx-get) whenever it is told "rowlease:poll": every so many seconds, as the reader
// chose; not in a hidden tab, not while paused, and less and less often while the server
// does not answer. A live part that holds `[data-live-end]` has nothing more to tell.
(function () {
  const KEY = "rowlease.interval";
  const LONGEST_WAIT_SECONDS = 30;
  const live = document.querySelector("[data-live]");
  const select = document.getElementById("interval");
  const health = document.getElementById("health");
  const updated = document.getElementById("updated");
  const outage = document.getElementById("outage");
  const outageText = document.getElementById("outage-text");

  let seconds = read();
  let resumeSeconds = seconds || 2;
  let timer = null;
  let etag = "";
  let failures = 0;
  let seenAt = Date.now();
  let nextAt = 0;
  let isAsking = false;

  function read() {
    try {
      const stored = Number(localStorage.getItem(KEY) ?? "2");
      return [...select.options].some((option) => Number(option.value) === stored) ? stored : 2;
    } catch (error) {
      return 2;
    }
  }

  function set(chosen) {
    seconds = chosen;
    if (chosen) resumeSeconds = chosen;
    select.value = String(chosen);
    try {
      localStorage.setItem(KEY, String(chosen));
    } catch (error) { /* It holds for this page then. */ }
    schedule();
    tell();
  }

  function isOver() {
    return !live || live.querySelector("[data-live-end]") !== null;
  }

  function wait() {
    if (!failures) return seconds;
    const longer = Math.min(Math.max(seconds, 1) * 2 ** failures, LONGEST_WAIT_SECONDS);
    return longer * (0.75 + Math.random() / 2);
  }

  function schedule() {
    clearTimeout(timer);
    timer = null;
    if (!seconds || isOver() || document.hidden) return;
    const milliseconds = wait() * 1000;
    nextAt = Date.now() + milliseconds;
    timer = setTimeout(ask, milliseconds);
  }

  function ask() {
    clearTimeout(timer);
    timer = null;
    // A page whose reader is in the middle of something is left alone.
    if (isAsking || !live || document.querySelector("dialog[open]")) return schedule();
    isAsking = true;
    live.dispatchEvent(new CustomEvent("rowlease:poll"));
  }

  function tell() {
    const down = failures > 0;
    health.dataset.health = down ? "down" : seconds && !isOver() ? "ok" : "paused";
    const age = Math.floor((Date.now() - seenAt) / 1000);
    const over = live ? "no more to come" : "not live";
    updated.textContent = down ? "no answer"
      : isOver() ? over
      : !seconds ? "paused"
      : age < 2 ? "up to date" : "updated " + window.rowlease.span(age) + " ago";
    outage.hidden = !down;
    if (live) live.classList.toggle("is-stale", down);
    if (down) {
      const left = Math.max(0, Math.round((nextAt - Date.now()) / 1000));
      outageText.textContent = "The server does not answer. What you see is " +
        window.rowlease.span(age) + " old. " +
        (seconds ? "Trying again in " + left + " s." : "Paused.");
    }
  }

  function answered(event) {
    if (event.detail.elt !== live) return;
    isAsking = false;
    const status = event.detail.xhr.status;
    if (status === 200 || status === 304) {
      failures = 0;
      seenAt = Date.now();
      if (status === 200) etag = event.detail.xhr.getResponseHeader("ETag") || "";
    } else if (status === 401 || status === 403 || status === 404) {
      location.reload(); // Logged out, or the job is gone: the page itself says so.
      return;
    } else {
      failures += 1;
    }
    schedule();
    tell();
  }

  // What the reader opened or ticked, how far a region was scrolled, and where the focus
  // is (htmx sees to that, by the element's id), outlives a swap.
  const kept = { open: new Map(), ticked: new Set(), scrolled: new Map(), focus: "" };
  function remember(event) {
    if (event.detail.target !== live) return;
    kept.open.clear();
    kept.ticked.clear();
    kept.scrolled.clear();
    kept.focus = live.contains(document.activeElement) ? document.activeElement.id : "";
    for (const region of live.querySelectorAll(".scroll[id], .tabs[id]")) kept.scrolled.set(region.id, [region.scrollLeft, region.scrollTop]);
    for (const details of live.querySelectorAll("details[id]")) kept.open.set(details.id, details.open);
    for (const box of live.querySelectorAll("input[type=checkbox][id]:checked")) kept.ticked.add(box.id);
  }
  function restore(event) {
    if (event.detail.target !== live) return;
    for (const details of live.querySelectorAll("details[id]")) {
      if (kept.open.has(details.id)) details.open = kept.open.get(details.id);
    }
    for (const box of live.querySelectorAll("input[type=checkbox][id]")) box.checked = kept.ticked.has(box.id);
    for (const [id, [left, top]] of kept.scrolled) {
      const region = document.getElementById(id);
      if (region && left) region.scrollLeft = left;
      if (region && top) region.scrollTop = top;
    }
    // What lies in closed details takes no focus, and htmx tried while these were closed.
    const focused = kept.focus && document.getElementById(kept.focus);
    if (focused && document.activeElement !== focused) focused.focus({ preventScroll: true });
    document.dispatchEvent(new CustomEvent("rowlease:restored"));
  }

  window.rowlease.pause = function () { set(seconds ? 0 : resumeSeconds); return seconds; };
  window.rowlease.ask = ask;

  select.hidden = !live;
  select.value = String(seconds);
  select.addEventListener("change", function () { set(Number(select.value)); });
  document.getElementById("outage-now").addEventListener("click", ask);
  document.addEventListener("visibilitychange", function () {
    if (document.hidden) { clearTimeout(timer); timer = null; }
    else if (seconds && !isOver()) ask();
  });
  window.addEventListener("offline", function () { failures = Math.max(failures, 1); tell(); });
  window.addEventListener("online", ask);
  if (live) {
    document.body.addEventListener("htmx:configRequest", function (event) {
      if (event.detail.elt === live && etag) event.detail.headers["If-None-Match"] = etag;
    });
    document.body.addEventListener("htmx:afterRequest", answered);
    document.body.addEventListener("htmx:beforeSwap", remember);
    document.body.addEventListener("htmx:afterSwap", restore);
  }
  schedule();
  tell();
  setInterval(function () { if (!document.hidden) tell(); }, 1000);
})();
