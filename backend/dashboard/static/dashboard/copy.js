"use strict";
// `<button data-copy="text">` or `data-copy-from="#id"` copies; toasts say what happened.
(function () {
  function toast(message) {
    const box = document.createElement("div");
    box.className = "toast";
    box.textContent = message;
    document.getElementById("toasts").append(box);
    setTimeout(function () { box.remove(); }, 4000);
  }

  function copyByHand(text, near) {
    // navigator.clipboard is there on HTTPS and localhost alone.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    near.after(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    near.focus();
    return done;
  }

  async function copy(button) {
    const from = button.dataset.copyFrom;
    const text = from ? document.querySelector(from).textContent : button.dataset.copy;
    let done = false;
    if (navigator.clipboard && window.isSecureContext) {
      done = await navigator.clipboard.writeText(text).then(() => true, () => false);
    }
    if (!done) done = copyByHand(text, button);
    toast(done ? "Copied." : "The browser did not allow copying; select the text instead.");
  }

  window.rowlease.toast = toast;
  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (button) copy(button);
  });
})();
