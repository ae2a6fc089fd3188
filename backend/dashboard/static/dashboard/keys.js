"use strict";
// Single keys. Off inside inputs, and wherever the reader switched them off.
(function () {
  const KEY = "rowlease.keys";
  const dialog = document.getElementById("help-dialog");
  const box = document.getElementById("keys-on");
  let isOn = true;
  let isGoing = false;

  try {
    isOn = localStorage.getItem(KEY) !== "off";
  } catch (error) { /* On, then. */ }
  box.checked = isOn;
  box.addEventListener("change", function () {
    isOn = box.checked;
    try {
      localStorage.setItem(KEY, isOn ? "on" : "off");
    } catch (error) { /* It holds for this page then. */ }
  });
  document.getElementById("help").addEventListener("click", function () { dialog.showModal(); });

  // Rows are whatever carries `data-row`; its `data-href` opens, its checkbox selects.
  let currentId = "";
  function rows() { return [...document.querySelectorAll("[data-row]")]; }
  function current() { return currentId ? document.getElementById(currentId) : null; }
  function mark(row) {
    for (const other of document.querySelectorAll(".is-current")) other.classList.remove("is-current");
    if (!row) return;
    currentId = row.id;
    row.classList.add("is-current");
  }
  function step(by) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.id === currentId);
    mark(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)]);
    current().scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("rowlease:restored", function () { if (currentId) mark(current()); });

  function click(selector) {
    const found = document.querySelector(selector);
    if (found) found.click();
    return Boolean(found);
  }

  const ACTIONS = {
    "/": function () { document.getElementById("search").focus(); },
    "?": function () { dialog.showModal(); },
    g: function () { isGoing = true; setTimeout(function () { isGoing = false; }, 1500); },
    j: function () { step(1); },
    k: function () { step(-1); },
    x: function () {
      const tick = current() && current().querySelector("input[type=checkbox]:not(:disabled)");
      if (tick) tick.click();
    },
    r: function () { click("[data-key-action=retry]:not(:disabled)"); },
    p: function () {
      const seconds = window.rowlease.pause();
      window.rowlease.toast(seconds ? "Live: every " + seconds + " s." : "Paused.");
    },
    t: function () { window.rowlease.toast("Theme: " + window.rowlease.nextTheme() + "."); },
  };

  document.addEventListener("keydown", function (event) {
    const target = event.target;
    const isTyping = target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
    if (event.key === "Escape" && isTyping) target.blur();
    if (!isOn || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    if (isGoing) {
      isGoing = false;
      if (click('[data-go="' + CSS.escape(event.key) + '"]')) event.preventDefault();
      return;
    }
    if (event.key === "Enter") {
      const row = current();
      if (row && row.dataset.href && !target.closest("a, button, summary, input")) location.assign(row.dataset.href);
      return;
    }
    const action = ACTIONS[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });
})();
