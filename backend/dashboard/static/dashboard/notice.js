"use strict";
// A notice is for the reader who was sent here, once: a reload or a copied link has none.
(function () {
  const url = new URL(location.href);
  if (!url.searchParams.has("notice")) return;
  url.searchParams.delete("notice");
  history.replaceState(history.state, "", url);

  // On the page of a job it says how the job is, and no longer than the job is so.
  const badge = function () {
    const found = document.querySelector(".job [data-live] .badge");
    return found ? found.dataset.tone : "";
  };
  const before = badge();
  document.addEventListener("htmx:afterSettle", function () {
    if (before && badge() !== before && badge() === "failed") document.querySelector("[data-notice]")?.remove();
  });
})();
