"use strict";
// Keeps ages and countdowns up to date. The server writes absolute times, so that the
// same data is the same page, and a poll can be answered with 304.
(function () {
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const told = document.querySelector('meta[name="server-now"]');
  // The reader's clock may be wrong by hours; the server's is what the times are of.
  const skew = told ? Date.parse(told.content) - Date.now() : 0;

  function span(seconds) {
    for (const [size, unit] of UNITS) {
      if (seconds >= size) return Math.floor(seconds / size) + " " + unit;
    }
    return "0 s";
  }

  function text(kind, seconds) {
    if (kind === "left") return seconds >= 0 ? span(seconds) + " left" : "over by " + span(-seconds);
    if (kind === "so-far") return "for " + span(Math.max(0, -seconds));
    if (Math.abs(seconds) < 1) return "now";
    return seconds > 0 ? "in " + span(seconds) : span(-seconds) + " ago";
  }

  function refresh(root) {
    const now = Date.now() + skew;
    for (const element of root.querySelectorAll("time[data-time]")) {
      const seconds = (Date.parse(element.dateTime) - now) / 1000;
      const wanted = text(element.dataset.time, seconds);
      if (element.textContent !== wanted) element.textContent = wanted;
      if (element.dataset.time === "left") element.classList.toggle("is-over", seconds < 0);
    }
  }

  window.rowlease.now = function () { return Date.now() + skew; };
  window.rowlease.span = span;
  refresh(document);
  document.addEventListener("htmx:afterSettle", function () { refresh(document); });
  document.addEventListener("visibilitychange", function () { refresh(document); });
  setInterval(function () { if (!document.hidden) refresh(document); }, 1000);
})();
