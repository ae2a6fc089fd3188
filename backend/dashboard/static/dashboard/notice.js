"use strict";
// A notice is for the reader who was sent here, once: a reload or a copied link has none.
(function () {
  const url = new URL(location.href);
  if (!url.searchParams.has("notice")) return;
  url.searchParams.delete("notice");
  history.replaceState(history.state, "", url);
})();
