"use strict";
// The list's selection, and filters that apply themselves. The list works without it.
(function () {
  const filters = document.getElementById("filters");
  if (filters) {
    for (const select of filters.querySelectorAll("[data-submits]")) {
      select.addEventListener("change", function () { filters.requestSubmit(); });
    }
    filters.addEventListener("submit", function () {
      // What asks for nothing has no place in an address that somebody will share.
      for (const field of filters.elements) if (!field.value) field.disabled = true;
    });
    window.addEventListener("pageshow", function () {
      for (const field of filters.elements) field.disabled = false;
    });
  }

  const tabs = document.getElementById("tabs");
  const here = tabs?.querySelector("[aria-current]");
  if (here) tabs.scrollLeft = here.offsetLeft - tabs.offsetLeft + here.offsetWidth - tabs.clientWidth;

  const form = document.getElementById("selection");
  if (!form) return;
  const told = document.getElementById("selected");
  const button = document.getElementById("retry-selected");
  const label = document.getElementById("retry-label");
  const unselect = document.getElementById("unselect");
  const dialog = document.getElementById("ask-retry");
  let isSure = false;

  function boxes() { return [...document.querySelectorAll('input[name="job"][form="selection"]')]; }
  function ticked() { return boxes().filter((box) => box.checked); }
  function jobs(count) { return count === 1 ? "1 job" : count + " jobs"; }
  function put(element, text) { if (element.textContent !== text) element.textContent = text; }

  function count() {
    const chosen = ticked();
    const failed = chosen.filter((box) => box.dataset.state === "failed").length;
    const others = chosen.length - failed;
    let text = "Tick failed jobs to retry them.";
    if (chosen.length) {
      text = jobs(chosen.length) + " selected.";
      if (others) {
        text += " " + (others === chosen.length ? "None is failed" : others + " not failed") +
          ": only failed jobs can be retried.";
      }
    }
    put(told, text);
    put(label, failed ? "Retry " + failed : "Retry selected");
    button.disabled = !failed;
    unselect.hidden = !chosen.length;
    form.classList.toggle("has-some", chosen.length > 0);
    const all = document.getElementById("tick-all");
    if (all) {
      const every = boxes();
      all.checked = every.length > 0 && chosen.length === every.length;
      all.indeterminate = chosen.length > 0 && chosen.length < every.length;
    }
    return failed;
  }

  document.addEventListener("change", function (event) {
    if (event.target.id === "tick-all") {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    if (event.target.matches('input[type="checkbox"]')) count();
  });
  document.addEventListener("rowlease:restored", count);
  window.addEventListener("pageshow", count);
  unselect.addEventListener("click", function () {
    for (const box of boxes()) box.checked = false;
    count();
    told.closest("form").querySelector("a, button:not([hidden], :disabled)")?.focus();
  });

  form.addEventListener("submit", function (event) {
    if (isSure) return;
    event.preventDefault();
    const failed = count();
    if (!failed) return;
    put(document.getElementById("ask-title"), "Retry " + jobs(failed) + "?");
    put(document.getElementById("ask-text"), failed === 1
      ? "It is queued again at once, and its attempts start from 0."
      : "They are queued again at once, and their attempts start from 0.");
    put(document.getElementById("ask-yes"), "Retry " + jobs(failed));
    dialog.returnValue = "";
    dialog.showModal();
  });
  dialog.addEventListener("close", function () {
    if (dialog.returnValue !== "retry") return;
    isSure = true;
    form.requestSubmit();
    isSure = false;
  });
})();
