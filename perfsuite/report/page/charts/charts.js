/* Draws the figures of the page with Vega-Lite and Vega, as SVG that fits its place; see charts/__init__.py. */
"use strict";

(() => {
  const DELAY_MS = 120;
  const NARROW = 480;
  /* From here on rows have their longer names. */
  const WIDE = 700;
  const FONT_SIZE = 11;
  /* What an entry of a legend has beside its words: the symbol and the room around it. */
  const SYMBOL_WIDTH = 36;
  /* What an axis at the left takes beside its words, and in all where these are numbers or few; legends begin there. */
  const AXIS_ROOM = 16;
  const AXIS_WIDTH = 80;
  const CASE_STEP = 30;
  /* On paper: what an A4 page has beside its margins, and ink on white whatever the screen has. */
  const PAPER_WIDTH = 700;
  const PAPER_INK = "#111111";

  const specs = contentOf("figures") ?? {};
  const cases = contentOf("case-figures") ?? { templates: {}, cases: {}, runs: [], others: "" };
  /* By figure: what was drawn, and at which width and in which ink. */
  const drawn = new WeakMap();
  const known = new Set();
  const waiting = new Set();
  let isPrinting = false;
  let timer = null;

  function contentOf(id) {
    const element = document.getElementById(id);
    return element ? JSON.parse(element.textContent) : null;
  }

  function own(object, key) {
    return key !== undefined && Object.hasOwn(object, key) ? object[key] : null;
  }

  function specOf(figure) {
    const entry = own(cases.cases, figure.dataset.case);
    return entry ? caseSpec(entry, nameOf(figure)) : unpacked(own(specs, figure.dataset.figure));
  }

  function hasSpec(figure) {
    return Boolean(own(cases.cases, figure.dataset.case) ?? own(specs, figure.dataset.figure));
  }

  function nameOf(figure) {
    return figure.closest("tbody")?.querySelector("summary")?.textContent ?? "";
  }

  /* Copies a specification, its packed data as records again. */
  function unpacked(part) {
    if (Array.isArray(part)) return part.map(unpacked);
    if (part === null || typeof part !== "object") return part;
    const { fields, rows, words, ...rest } = part;
    if (!fields || !rows) return Object.fromEntries(Object.entries(part).map(([key, each]) => [key, unpacked(each)]));
    const record = (row) => {
      const told = fields.map((field, place) => [field, words[field] ? words[field][row[place]] : row[place]]);
      return Object.fromEntries(told.filter(([, value]) => value !== null));
    };
    return { ...unpacked(rest), values: rows.map(record) };
  }

  /* Visits all objects within a specification. */
  function eachPart(part, visit) {
    if (part === null || typeof part !== "object") return;
    if (!Array.isArray(part)) visit(part);
    for (const each of Object.values(part)) eachPart(each, visit);
  }

  /* Gives rows their longer names. */
  function lengthen(spec) {
    const longer = new Map();
    eachPart(spec, (part) => {
      if (part.field !== "row" || !part.scale?.domain || !spec.usermeta?.wideNames) return;
      part.scale.domain.forEach((name, place) => longer.set(name, spec.usermeta.wideNames[place]));
      part.scale.domain = spec.usermeta.wideNames;
    });
    eachPart(spec, (part) => {
      if (Array.isArray(part.values)) {
        for (const each of part.values) if (each && typeof each.row === "string") each.row = longer.get(each.row) ?? each.row;
      }
    });
  }

  /* How much of a width words at the left of rows may take. */
  function labelLimit(width) {
    return width < NARROW ? Math.round(width * 0.45) : 320;
  }

  /* Lets each legend have as many columns as its longest words leave room for. */
  function fitLegends(spec, width, font) {
    const brush = document.createElement("canvas").getContext("2d");
    brush.font = `${FONT_SIZE}px ${font}`;
    const widest = (words) => Math.max(...words.map((word) => brush.measureText(word).width));
    let left = AXIS_WIDTH;
    eachPart(spec, (part) => {
      if (part.field !== "row" || !part.axis || !part.scale?.domain) return;
      left = AXIS_ROOM + Math.min(widest(part.scale.domain), labelLimit(width));
    });
    const room = width - left;
    eachPart(spec, (part) => {
      if (!part.legend || !part.scale?.domain) return;
      part.legend.columns = Math.max(1, Math.min(6, Math.floor(room / (widest(part.scale.domain) + SYMBOL_WIDTH))));
      part.legend.labelLimit = Math.round(room - SYMBOL_WIDTH);
    });
  }

  /* Fills the template of a case with its times. */
  function caseSpec(entry, name) {
    const template = own(cases.templates, entry.template);
    if (!template) return null;
    const told = (words, time) => `${words}: ${time} ${template.usermeta.unit}`;
    const times = Object.entries(entry.times).flatMap(([row, values]) =>
      values.map((time) => ({ row, time, tip: told(row, time) })),
    );
    for (const [run, time] of entry.others ?? []) times.push({ row: cases.others, time, tip: told(cases.runs[run], time) });
    const medians = Object.entries(entry.medians).map(([row, time]) => ({ row, time, tip: told(`${row}, median`, time) }));
    const bounds = Object.entries(entry.bounds ?? {}).map(([what, time]) => ({ what, time, tip: told(what, time) }));
    const rows = new Set([...times, ...medians].map(({ row }) => row)).size;
    const parts = [...medians, ...bounds].map(({ tip }) => tip);
    return {
      ...structuredClone(template),
      description: `${name}: ${Object.values(entry.times)[0].length} samples, ${parts.join(", ")}`,
      title: entry.beyond || null,
      height: rows * CASE_STEP,
      datasets: { times, medians, bounds },
    };
  }

  function placeOf(figure) {
    const found = figure.querySelector(":scope > .drawing");
    if (found) return found;
    const made = document.createElement("div");
    made.className = "drawing";
    return figure.appendChild(made);
  }

  function theme(ink, font, width) {
    const isNarrow = width < NARROW;
    const words = { color: ink, font, fontSize: FONT_SIZE };
    return {
      aria: false,
      background: null,
      font,
      padding: 4,
      view: { stroke: null, fill: null },
      axis: {
        labelColor: ink,
        labelFontSize: FONT_SIZE,
        labelLimit: labelLimit(width),
        labelOverlap: "parity",
        labelSeparation: 6,
        titleColor: ink,
        titleFontSize: FONT_SIZE,
        titleFontWeight: "normal",
        titleLimit: width - 40,
        domainColor: ink,
        domainOpacity: 0.5,
        tickColor: ink,
        tickOpacity: 0.5,
        gridColor: ink,
        gridOpacity: 0.13,
      },
      legend: {
        orient: "top",
        direction: "horizontal",
        labelColor: ink,
        labelFontSize: FONT_SIZE,
        /* One height for all, so that a tall symbol does not lift its words off the line. */
        clipHeight: 18,
        titleColor: ink,
        symbolOpacity: 1,
        offset: 8,
        columnPadding: isNarrow ? 8 : 14,
        layout: { top: { direction: "vertical", anchor: "start", margin: 4 } },
      },
      title: { color: ink, font, fontSize: FONT_SIZE, fontWeight: "normal", anchor: "start", limit: width - 10, offset: 6 },
      text: words,
      rule: { color: ink },
      style: {
        ink: { color: ink },
        cell: { stroke: null },
      },
    };
  }

  /* Draws a figure that can be seen, unless it is drawn already at this width and in this ink. */
  function draw(figure) {
    const place = placeOf(figure);
    if (!place.checkVisibility()) return;
    const spec = specOf(figure);
    if (!spec) return;
    const most = spec.usermeta?.mostWidth ?? Infinity;
    const width = Math.floor(Math.min(place.clientWidth, most, isPrinting ? PAPER_WIDTH : Infinity));
    if (!width) return;
    const style = getComputedStyle(figure);
    const ink = isPrinting ? PAPER_INK : style.color;
    const before = drawn.get(figure);
    if (before && before.width === width && before.ink === ink) return;
    if (width >= WIDE) lengthen(spec);
    fitLegends(spec, width, style.fontFamily);
    const config = theme(ink, style.fontFamily, width);
    const fitted = { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
    const { spec: compiled } = vegaLite.compile(fitted, { config });
    if (before) before.view.finalize();
    place.replaceChildren();
    const runtime = vega.parse(compiled, null, { ast: true });
    const view = new vega.View(runtime, { renderer: "svg", expr: vegaInterpreter, hover: false, logLevel: vega.Warn });
    view.initialize(place).run();
    drawn.set(figure, { view, width, ink });
    const svg = place.querySelector("svg");
    /* One image with one name: its marks are not announced one by one. */
    for (const part of svg.children) part.setAttribute("aria-hidden", "true");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", spec.description ?? "");
    svg.style.maxWidth = "100%";
    svg.style.height = "auto";
    svg.style.display = "block";
  }

  /* Measured when seen; a figure in closed details is drawn when they open, and one whose width changed again. */
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) waiting.add(target.closest("figure.chart"));
    clearTimeout(timer);
    timer = setTimeout(drawWaiting, DELAY_MS);
  });

  function drawWaiting() {
    const figures = [...waiting];
    waiting.clear();
    figures.forEach(draw);
  }

  function drawFigures(root) {
    for (const figure of root.querySelectorAll("figure.chart")) {
      if (!known.has(figure) && hasSpec(figure)) {
        known.add(figure);
        observer.observe(placeOf(figure));
      }
      if (known.has(figure)) draw(figure);
    }
  }

  function drawAgain() {
    known.forEach((figure) => drawn.has(figure) && draw(figure));
  }

  function print(begins) {
    isPrinting = begins;
    drawAgain();
  }

  new MutationObserver(drawAgain).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
  matchMedia("print").addEventListener("change", (event) => print(event.matches));
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  window.drawFigures = drawFigures;
})();
