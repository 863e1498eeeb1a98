/* The history: filter the cases, and tell of the run that is pointed at or chosen by the arrow keys. */
"use strict";

(() => {
  const PREFIX = "#case=";
  const MOST_TOLD = 8;
  const byId = (id) => document.getElementById(id);
  const cases = [...document.querySelectorAll("details.series")];
  const { runs, charts } = JSON.parse(byId("courses").textContent);

  /* Filter */

  const filter = document.querySelector("form.filter");
  const words = new Map(cases.map((each) => [each, each.querySelector("summary").textContent.toLowerCase()]));
  let onlyChanged = false;

  function applyFilter() {
    const wanted = byId("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of cases) {
      const isWanted = wanted.every((word) => words.get(each).includes(word));
      each.hidden = !isWanted || (onlyChanged && !("changed" in each.dataset));
    }
    byId("changed").setAttribute("aria-pressed", String(onlyChanged));
    byId("shown").textContent = `${cases.filter((each) => !each.hidden).length} of ${cases.length} cases`;
  }

  function listenToFilter() {
    filter.addEventListener("input", applyFilter);
    filter.addEventListener("submit", (event) => event.preventDefault());
    filter.addEventListener("reset", () => {
      onlyChanged = false;
      setTimeout(applyFilter);
    });
    byId("changed").addEventListener("click", () => {
      onlyChanged = !onlyChanged;
      applyFilter();
    });
  }

  /* Runs of a chart: a line where the chosen one lies, and below the chart what was measured in it. */

  /* The runs of a chart in the order of time, those of several boards that began at one moment together. */
  function stopsOf(chart) {
    const found = new Map();
    for (const [name, points] of chart.lines) {
      for (let at = 0; at < points.length; at += 2) {
        const [across, moment, when, commit] = runs[points[at]];
        if (!found.has(moment)) found.set(moment, { across, moment, when, times: [] });
        found.get(moment).times.push({ told: `${name} ${points[at + 1]} ${chart.unit}`, commit });
      }
    }
    return [...found.values()].sort((one, other) => one.moment - other.moment);
  }

  /* The runs nearest to a place, and all that the pointer does not tell from them. */
  function near(stops, across, reach) {
    const away = (stop) => Math.abs(stop.across - across);
    const least = stops.reduce((best, stop) => Math.min(best, away(stop)), Infinity);
    return stops.filter((stop) => away(stop) <= Math.max(least, reach));
  }

  function wordsOf({ when, times }) {
    const isOne = times.every((each) => each.commit === times[0].commit);
    const told = times.map((each) => (isOne ? each.told : each.told + each.commit)).join("; ");
    return `${when}${isOne ? times[0].commit : ""}: ${told}`;
  }

  function follow(course) {
    const chart = charts[Number(course.dataset.chart)];
    const stops = stopsOf(chart);
    const area = course.querySelector("svg.area");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "cursor");
    line.setAttribute("y2", area.getAttribute("height"));
    let chosen = null;

    function show(found) {
      chosen = found.at(-1);
      for (const end of ["x1", "x2"]) line.setAttribute(end, `${chosen.across / 10}%`);
      area.append(line);
      const more = found.length > MOST_TOLD ? [`and ${found.length - MOST_TOLD} earlier runs here`] : [];
      course.querySelector(".told").textContent = [...found.slice(-MOST_TOLD).map(wordsOf), ...more].join("\n");
    }

    function step(event) {
      const by = { ArrowLeft: -1, ArrowRight: 1, Home: -stops.length, End: stops.length }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const at = chosen === null ? stops.length - 1 : stops.indexOf(chosen) + by;
      show([stops[Math.min(stops.length - 1, Math.max(0, at))]]);
    }

    const plot = course.querySelector(".plot");
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", "Runs over time: the arrow keys go from run to run");
    plot.addEventListener("keydown", step);
    plot.addEventListener("focus", () => chosen ?? show([stops.at(-1)]));
    plot.addEventListener("pointermove", (event) => {
      const box = area.getBoundingClientRect();
      const perPixel = 1000 / box.width;
      show(near(stops, (event.clientX - box.left) * perPixel, perPixel / 2));
    });
  }

  /* Links to cases */

  function openLinked() {
    if (!location.hash.startsWith(PREFIX)) return;
    const found = byId(location.hash.slice(1));
    if (!found) return;
    if (found.hidden) {
      filter.reset();
      applyFilter();
    }
    found.hidden = false;
    found.open = true;
    found.scrollIntoView();
    found.querySelector("summary").focus({ preventScroll: true });
  }

  for (const course of document.querySelectorAll(".course")) follow(course);
  if (filter) listenToFilter();
  addEventListener("hashchange", openLinked);
  addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#case=']");
    if (link && link.hash === location.hash) openLinked();
  });
  openLinked();
})();
