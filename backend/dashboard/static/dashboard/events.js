"use strict";
// The feed does not move under its reader. Whoever has scrolled down, marked text or has
// the focus in it is told how many events are new and gets them by a click, or by going
// back to the top. What was held back is the server's last answer, so nothing is asked twice.
(function () {
  const AT_TOP_PIXELS = 80;
  const feed = document.getElementById("feed");
  const button = document.getElementById("newer");
  const count = document.getElementById("newer-count");
  let held = "";

  function isReading() {
    const selection = document.getSelection();
    return window.scrollY > AT_TOP_PIXELS
      || feed.contains(document.activeElement)
      || (selection && !selection.isCollapsed && feed.contains(selection.anchorNode));
  }

  function tell() {
    const shown = new Set([...feed.querySelectorAll("[data-event]")].map((event) => event.dataset.event));
    const answer = new DOMParser().parseFromString(held, "text/html");
    const events = [...answer.querySelectorAll("[data-event]")];
    const fresh = events.filter((event) => !shown.has(event.dataset.event)).length;
    count.textContent = (fresh === events.length ? fresh + " or more" : fresh) + " new";
    button.hidden = fresh === 0;
  }

  function show() {
    if (!held) return;
    const answer = held;
    held = "";
    button.hidden = true;
    // As if the poll had just been answered: the shell then keeps what was opened.
    window.htmx.swap(feed, answer, { swapStyle: "innerHTML", swapDelay: 0, settleDelay: 0 }, { eventInfo: { target: feed } });
  }

  document.body.addEventListener("htmx:beforeSwap", function (event) {
    if (event.detail.target !== feed || !event.detail.shouldSwap) return;
    held = "";
    button.hidden = true;
    if (!isReading()) return;
    held = event.detail.xhr.responseText;
    event.detail.shouldSwap = false;
    tell();
  });
  button.addEventListener("click", function () {
    window.scrollTo({ top: 0 });
    show();
    document.getElementById("content").focus({ preventScroll: true });
  });
  window.addEventListener("scroll", function () { if (held && !isReading()) show(); }, { passive: true });
  document.addEventListener("focusin", function () { if (held && !isReading()) show(); });
})();
