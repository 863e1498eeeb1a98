/* Filter, sort, copy, links to cases, the scheme. */
"use strict";

(() => {
  const PREFIX = "#case=";
  const COPIED_MS = 2000;

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const bodies = all("table.cases > tbody");
  const idOf = new Map(bodies.map((body) => [body, caseIdOf(body)]));

  function caseIdOf(body) {
    return decoded(body.id.slice(PREFIX.length - 1));
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  function tell(text) {
    byId("told").textContent = text;
  }

  /* Scheme: the page's own choice until it is loaded again. */

  const darkByDefault = window.matchMedia("(prefers-color-scheme: dark)");

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : darkByDefault.matches;
  }

  function nameScheme() {
    byId("theme").textContent = isDark() ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  }

  function switchScheme() {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameScheme();
  }

  /* Filter */

  const filter = document.querySelector("form.filter");
  let outcome = "";

  function isWanted(body, wanted) {
    if (outcome && body.dataset.outcome !== outcome) return false;
    if (wanted.kind && body.closest("[data-kind]").dataset.kind !== wanted.kind) return false;
    const text = idOf.get(body).toLowerCase();
    return wanted.words.every((word) => text.includes(word));
  }

  function wantedNow() {
    const words = byId("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    return { words, kind: byId("filter-kind").value };
  }

  function applyFilter() {
    const wanted = wantedNow();
    for (const body of bodies) body.hidden = !isWanted(body, wanted);
    for (const table of all(".kind-table")) table.hidden = !table.querySelector("tbody:not([hidden])");
    const nShown = bodies.filter((body) => !body.hidden).length;
    byId("shown").textContent = `${nShown} of ${bodies.length} cases`;
    for (const button of all("button.count")) {
      button.setAttribute("aria-pressed", String(button.dataset.outcome === outcome));
    }
  }

  function chooseOutcome(button) {
    const isChosen = button.dataset.outcome === outcome;
    outcome = isChosen ? "" : button.dataset.outcome;
    if (!filter.contains(button)) {
      byId("filter-text").value = byId("filter-kind").value = "";
      if (!isChosen) byId("cases").scrollIntoView();
    }
    applyFilter();
    tell(byId("shown").textContent);
  }

  function showAll() {
    filter.reset();
    applyFilter();
  }

  /* Sort: by figure where a cell has one, else by text; what has none comes last both ways. */

  function keyOf(body, place) {
    const cell = body.rows[0].cells[place];
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const isFigure = !cell.matches("th, .told");
    return isFigure ? null : cell.textContent.trim();
  }

  function compared(one, other, sign) {
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one === "number") return sign * (one - other);
    return sign * one.localeCompare(other, "en", { numeric: true });
  }

  function sortBy(heading) {
    const table = heading.closest("table");
    const isAscending = heading.getAttribute("aria-sort") !== "ascending";
    const place = heading.cellIndex;
    const keyed = [...table.tBodies].map((body) => ({ body, key: keyOf(body, place) }));
    keyed.sort((one, other) => compared(one.key, other.key, isAscending ? 1 : -1));
    for (const each of all("th[aria-sort]", table)) each.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
    table.append(...keyed.map((each) => each.body));
    tell(`Sorted by ${heading.textContent.trim()}, ${isAscending ? "ascending" : "descending"}`);
  }

  /* Copy: where the browser does not allow it, the command is selected for the reader's own hand. */

  function selectText(element) {
    const selection = window.getSelection();
    selection.removeAllRanges();
    const range = document.createRange();
    range.selectNodeContents(element);
    selection.addRange(range);
  }

  async function copied(code) {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      selectText(code);
      return document.execCommand("copy");
    }
  }

  async function copyFor(button) {
    const code = button.parentElement.querySelector("code");
    const isCopied = await copied(code).catch(() => false);
    if (!isCopied) selectText(code);
    button.textContent = isCopied ? "Copied" : "Press Ctrl+C";
    tell(isCopied ? "Command copied" : "The browser did not copy; the command is selected: press Ctrl+C");
    window.setTimeout(() => {
      button.textContent = "Copy";
    }, isCopied ? COPIED_MS : 2 * COPIED_MS);
  }

  for (const command of all(".command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.setAttribute("aria-label", "Copy the command");
    button.textContent = "Copy";
    command.append(button);
  }

  /* Links to cases */

  function targetOf(hash) {
    const wanted = decoded(hash.slice(PREFIX.length));
    return bodies.find((body) => idOf.get(body) === wanted);
  }

  function openLinked() {
    if (!window.location.hash.startsWith(PREFIX)) return;
    const body = targetOf(window.location.hash);
    if (!body) {
      tell("No case of this run has the name in the address");
      return;
    }
    if (body.hidden) showAll();
    const details = body.querySelector("details");
    details.open = true;
    body.scrollIntoView({ block: "start" });
    details.querySelector("summary").focus({ preventScroll: true });
  }

  /* Print: what is folded away is opened for as long as it takes. */

  let unfolded = [];

  function unfold() {
    unfolded = all("details.fold:not([open])");
    for (const details of unfolded) details.open = true;
  }

  function foldAgain() {
    for (const details of unfolded) details.open = false;
    unfolded = [];
  }

  function onClick(event) {
    const link = event.target.closest("a[href^='#case=']");
    if (link && link.hash === window.location.hash) openLinked();
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id === "theme") switchScheme();
    else if (button.matches(".copy")) copyFor(button);
    else if (button.matches(".count")) chooseOutcome(button);
    else if (button.closest("th[aria-sort]")) sortBy(button.closest("th"));
  }

  function listen() {
    document.addEventListener("click", onClick);
    darkByDefault.addEventListener("change", nameScheme);
    window.addEventListener("hashchange", openLinked);
    window.addEventListener("beforeprint", unfold);
    window.addEventListener("afterprint", foldAgain);
    filter?.addEventListener("input", applyFilter);
    filter?.addEventListener("submit", (event) => event.preventDefault());
    filter?.addEventListener("reset", () => {
      outcome = "";
      window.setTimeout(applyFilter);
    });
  }

  for (const button of all("button[disabled]")) button.disabled = false;
  nameScheme();
  listen();
  document.addEventListener("DOMContentLoaded", openLinked);
})();
