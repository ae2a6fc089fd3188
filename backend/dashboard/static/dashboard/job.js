"use strict";
// Draws where now is in the lanes of what still runs or waits; the server draws what it
// knows, so that the same data is the same page. Folds and unfolds whole trees.
(function () {
  const SVG = "http://www.w3.org/2000/svg";

  function draw() {
    for (const plot of document.querySelectorAll("svg[data-begin]")) {
      const begin = Date.parse(plot.dataset.begin);
      const end = Date.parse(plot.dataset.end);
      const share = (window.rowlease.now() - begin) / (end - begin);
      let line = plot.querySelector(".now");
      if (!line) {
        line = document.createElementNS(SVG, "line");
        line.setAttribute("class", "now");
        line.setAttribute("y1", "1");
        line.setAttribute("y2", "29");
        plot.append(line);
      }
      // Past the picture's end there is nothing to show it against.
      line.classList.toggle("unseen", !(share >= 0 && share <= 1));
      const x = (share * 100).toFixed(3) + "%";
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    }
  }

  function addFolding(box) {
    const all = [...box.querySelectorAll("details:not(.json-long)")];
    if (all.length < 2) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button quiet small";
    button.textContent = "Open all";
    button.addEventListener("click", function () {
      const open = button.textContent === "Open all";
      for (const details of all) details.open = open;
      if (!open) all[0].open = true;
      button.textContent = open ? "Fold all" : "Open all";
    });
    const actions = box.closest(".card").querySelector(".actions");
    if (actions) actions.prepend(button);
  }

  function start() {
    draw();
    for (const box of document.querySelectorAll(".json:not([data-folds])")) {
      box.dataset.folds = "";
      addFolding(box);
    }
  }

  // A finger that slips on a single key retries nothing: only a press of the button
  // itself goes through unasked.
  const dialog = document.getElementById("ask-retry");
  if (dialog) {
    document.addEventListener("click", function (event) {
      if (event.isTrusted || !event.target.closest("#retry")) return;
      event.preventDefault();
      dialog.returnValue = "";
      dialog.showModal();
    });
    dialog.addEventListener("close", function () {
      if (dialog.returnValue === "retry") document.getElementById("retry-form").requestSubmit();
    });
  }

  start();
  document.addEventListener("htmx:afterSettle", start);
  setInterval(function () { if (!document.hidden) draw(); }, 250);
})();
