"use strict";
// Runs before the page is drawn, so that the chosen theme never flashes.
(function () {
  const KEY = "rowlease.theme";
  const THEMES = ["system", "light", "dark"];
  const root = document.documentElement;

  function read() {
    try {
      const theme = localStorage.getItem(KEY);
      return THEMES.includes(theme) ? theme : "system";
    } catch (error) {
      return "system"; // Storage may be switched off.
    }
  }

  function apply(theme) {
    root.dataset.theme = theme;
    const name = document.getElementById("theme-name");
    if (name) name.textContent = theme;
  }

  function next() {
    const theme = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
    try {
      localStorage.setItem(KEY, theme);
    } catch (error) { /* It holds for this page then. */ }
    apply(theme);
    return theme;
  }

  apply(read());
  window.rowlease = { nextTheme: next };
  document.addEventListener("DOMContentLoaded", function () {
    apply(root.dataset.theme);
    document.getElementById("theme").addEventListener("click", next);
  });
})();
