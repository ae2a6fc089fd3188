"use strict";
// Helps with writing a job: checks the payload as it is typed, offers examples, makes a
// key, and shows the same as a curl command. What is allowed the server decides.
(function () {
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
  // What the API refuses, so that a command that is not finished makes no job.
  const NO_TYPE = "<type>";
  const UNIT_SECONDS = { seconds: 1, minutes: 60, hours: 3600, days: 86400 };
  const form = document.getElementById("new-job");
  const field = form.elements;
  const remark = document.getElementById("type-remark");
  const check = document.getElementById("payload-check");
  const offer = document.getElementById("example-offer");
  const curl = document.getElementById("curl");
  const maxBytes = Number(form.dataset.maxBytes);
  const firstCheck = check.textContent;
  let timer = null;
  let chosen = null;

  function handler() {
    const name = field.type.value.trim();
    return [...document.querySelectorAll(".handlers li")].find((item) => item.dataset.type === name);
  }
  function exampleOf(item) { return item.querySelector("[data-example]").textContent; }

  function isUntouched() {
    const typed = field.payload.value.trim();
    return typed === "" || typed === "{}" ||
      [...document.querySelectorAll("[data-example]")].some((example) => example.textContent.trim() === typed);
  }

  // Where `text` stops being JSON. Browsers differ in whether and how they tell.
  function faultOf(text) {
    const word = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
    const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
    const closers = [];
    let at = 0;
    // What may come: "value", "first" (a value or "]"), "key", "member" (a key or "}"),
    // ":", or "next" (a comma or the end of what is open).
    let wanted = "value";

    function string() {
      for (at += 1; at < text.length; at += 1) {
        if (text[at] === '"') { at += 1; return true; }
        if (text[at] < " ") return false;
        if (text[at] !== "\\") continue;
        escape.lastIndex = at;
        if (!escape.test(text)) return false;
        at = escape.lastIndex - 1;
      }
      return false;
    }
    for (;;) {
      while (at < text.length && " \t\n\r".includes(text[at])) at += 1;
      const sign = text[at];
      if (sign === undefined) return at;
      if (closers.length && sign === closers[closers.length - 1] && (wanted === "next" || wanted === (sign === "]" ? "first" : "member"))) {
        closers.pop();
        at += 1;
        wanted = "next";
      } else if (wanted === "next") {
        if (sign !== "," || !closers.length) return at;
        at += 1;
        wanted = closers[closers.length - 1] === "]" ? "value" : "key";
      } else if (wanted === ":") {
        if (sign !== ":") return at;
        at += 1;
        wanted = "value";
      } else if (sign === '"') {
        if (!string()) return at;
        wanted = wanted === "key" || wanted === "member" ? ":" : "next";
      } else if (wanted === "key" || wanted === "member") {
        return at;
      } else if (sign === "{" || sign === "[") {
        closers.push(sign === "{" ? "}" : "]");
        at += 1;
        wanted = sign === "{" ? "member" : "first";
      } else {
        word.lastIndex = at;
        if (!word.test(text)) return at;
        at = word.lastIndex;
        wanted = "next";
      }
    }
  }

  function placeOf(text) {
    const fault = faultOf(text);
    if (!text.slice(fault).trim()) return "it ends too early";
    const before = text.slice(0, fault).split("\n");
    return "line " + before.length + ", column " + (before[before.length - 1].length + 1);
  }

  // The reason why `text` is no payload, or "".
  function problem(text) {
    let value;
    try {
      value = JSON.parse(text);
    } catch (error) {
      return text.trim() ? "Not JSON: " + placeOf(text) + "." : "Write {} for an empty payload.";
    }
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      return "Must be a JSON object, like { \"name\": 1 }.";
    }
    const bytes = new TextEncoder().encode(text).length;
    return bytes > maxBytes ? bytes.toLocaleString("en") + " bytes; at most " + maxBytes.toLocaleString("en") + " are allowed." : "";
  }

  function showCheck() {
    // What the server said of this very text stands, and is more exact.
    const refusal = document.getElementById("payload-error");
    const isSaid = refusal !== null && field.payload.value === field.payload.defaultValue;
    check.hidden = isSaid;
    if (refusal) refusal.hidden = !isSaid;
    if (isSaid) return;
    const reason = problem(field.payload.value);
    const text = reason || "A JSON object. " + firstCheck.replace("A JSON object of at", "At");
    if (check.textContent !== text) check.textContent = text;
    check.classList.toggle("is-wrong", Boolean(reason));
    check.classList.toggle("is-right", !reason);
  }

  function showType() {
    const item = handler();
    for (const other of document.querySelectorAll(".handlers li")) other.classList.toggle("is-chosen", other === item);
    if (item && item !== chosen) item.parentElement.scrollTop = item.offsetTop;
    chosen = item;
    if (item) remark.replaceChildren(...item.querySelector("p").cloneNode(true).childNodes);
    else remark.textContent = field.type.value.trim() ? "No handler of this name is registered here. A worker that has none either fails the attempt."
      : "A registered type, or any other name that a worker of yours knows.";
    const isOffered = item && exampleOf(item) !== "{}" && exampleOf(item) !== field.payload.value;
    offer.hidden = !isOffered;
    if (isOffered) document.getElementById("example-name").textContent = item.dataset.type;
  }

  function availableAt() {
    const when = field.when.value;
    if (when === "in") {
      const at = new Date(window.rowlease.now() + Number(field.delay.value) * UNIT_SECONDS[field.delay_unit.value] * 1000);
      return isNaN(at) ? "" : at.toISOString();
    }
    // Without an offset the API reads it as this form does: in the project's zone.
    return when === "at" ? field.at.value : "";
  }

  function quoted(text) { return "'" + text.replaceAll("'", "'\\''") + "'"; }

  function showCurl() {
    if (!curl || !form.dataset.apiUrl) return;
    // The payload goes in as it was typed: a number read by the browser would lose digits.
    const members = ['"type": ' + JSON.stringify(field.type.value.trim() || NO_TYPE), '"payload": ' + (field.payload.value.trim() || "{}")];
    const priority = field.priority.value.trim();
    if (priority && priority !== "50") members.push('"priority": ' + priority);
    const attempts = field.max_attempts.value.trim();
    if (attempts) members.push('"max_attempts": ' + attempts);
    const at = availableAt();
    if (at) members.push('"available_at": ' + JSON.stringify(at));
    const key = field.idempotency_key.value;
    if (key.trim()) members.push('"idempotency_key": ' + JSON.stringify(key.trim()));
    const body = ("{" + members.join(", ") + "}").replace(HIDDEN, function (hidden) {
      return "\\u" + hidden.charCodeAt(0).toString(16).padStart(4, "0");
    });
    curl.textContent = "curl -X POST " + quoted(form.dataset.apiUrl) + " \\\n  -H 'Content-Type: application/json' \\\n  --data-raw " + quoted(body);
  }

  function refresh() {
    clearTimeout(timer);
    timer = setTimeout(function () { showCheck(); showType(); showCurl(); }, 250);
  }

  function use(item) {
    field.payload.value = exampleOf(item);
    refresh();
  }

  function newKey() {
    // randomUUID is there on HTTPS and localhost alone.
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  const range = document.getElementById("priority-range");
  range.hidden = false;
  range.addEventListener("input", function () { field.priority.value = range.value; refresh(); });
  field.priority.addEventListener("input", function () { range.value = field.priority.value; });

  const generate = document.getElementById("generate-key");
  generate.hidden = false;
  generate.addEventListener("click", function () { field.idempotency_key.value = newKey(); refresh(); });

  document.getElementById("use-example").addEventListener("click", function () { use(handler()); });
  for (const link of document.querySelectorAll("[data-use]")) {
    link.addEventListener("click", function (event) {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      field.type.value = link.dataset.use;
      // What somebody typed is never replaced unasked.
      if (isUntouched()) use(handler());
      refresh();
      field.payload.focus();
    });
  }
  // While it is typed, for once the focus has moved on somebody may be writing there.
  field.type.addEventListener("input", function () {
    const item = handler();
    if (item && isUntouched()) use(item);
  });
  // Whoever sets a time means it.
  for (const [name, when] of [["delay", "in"], ["delay_unit", "in"], ["at", "at"]]) {
    field[name].addEventListener("input", function () { field.when.value = when; });
  }
  form.addEventListener("input", refresh);
  document.getElementById("curl-card").hidden = !form.dataset.apiUrl;
  showCheck();
  showType();
  showCurl();
})();
