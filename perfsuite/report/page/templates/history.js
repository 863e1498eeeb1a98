/* The history: filter the cases, and tell of the run that is pointed at or chosen by the arrow keys. */
"use strict";

(() => {
  const PREFIX = "#case=";
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

  /* Runs of several boards at one time lie at one place, of which the first run stands for all. */
  function placesOf(chart) {
    const found = new Map();
    for (const [, points] of chart.lines) {
      for (let at = 0; at < points.length; at += 2) {
        const across = runs[points[at]][0];
        found.set(across, Math.min(points[at], found.get(across) ?? Infinity));
      }
    }
    return [...found.values()].sort((one, other) => one - other);
  }

  function nearest(places, across) {
    return places.reduce((best, each) =>
      Math.abs(runs[each][0] - across) < Math.abs(runs[best][0] - across) ? each : best,
    );
  }

  function timesIn(chart, run) {
    return chart.lines.flatMap(([name, points]) => {
      for (let at = 0; at < points.length; at += 2) {
        if (runs[points[at]][0] === runs[run][0]) return [`${name} ${points[at + 1]} ${chart.unit}`];
      }
      return [];
    });
  }

  function follow(course) {
    const chart = charts[Number(course.dataset.chart)];
    const places = placesOf(chart);
    const area = course.querySelector("svg.area");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "cursor");
    line.setAttribute("y2", area.getAttribute("height"));
    let chosen = null;

    function show(run) {
      chosen = run;
      for (const end of ["x1", "x2"]) line.setAttribute(end, `${runs[run][0] / 10}%`);
      area.append(line);
      course.querySelector(".told").textContent = `${runs[run][1]}: ${timesIn(chart, run).join("; ")}`;
    }

    function step(event) {
      const by = { ArrowLeft: -1, ArrowRight: 1, Home: -places.length, End: places.length }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const at = chosen === null ? places.length - 1 : places.indexOf(chosen) + by;
      show(places[Math.min(places.length - 1, Math.max(0, at))]);
    }

    const plot = course.querySelector(".plot");
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", "Runs over time: the arrow keys go from run to run");
    plot.addEventListener("keydown", step);
    plot.addEventListener("focus", () => chosen ?? show(places.at(-1)));
    plot.addEventListener("pointermove", (event) => {
      const box = area.getBoundingClientRect();
      show(nearest(places, ((event.clientX - box.left) / box.width) * 1000));
    });
  }

  /* Links to cases */

  function openLinked() {
    if (!location.hash.startsWith(PREFIX)) return;
    const found = byId(location.hash.slice(1)) ?? byId(decodeURI(location.hash.slice(1)));
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
  openLinked();
})();
