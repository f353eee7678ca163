"use strict";
// Draws a page from the data beside it: tiles, plots in SVG, tables. It asks nobody for anything.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 12;

/** A new element with attributes and children; text children are text, never markup. */
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}
function drawn(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}
function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// ---- numbers with their units ------------------------------------------------------------------------------------

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "K"]];
const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]];

/** `value` to `digits` significant digits, whole numbers in full. */
function digits(value, digits) {
  if (value === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.min(12, Math.max(0, digits - whole)));
}
function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
function grouped(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
function scaled(value, scales, unit) {
  const size = Math.abs(value);
  for (const [scale, prefix] of scales) {
    if (size >= scale * 0.9995) return [value / scale, prefix + unit];
  }
  return [value, unit];
}

const FORMATS = {
  text: (value) => String(value),
  count: (value) => (Number.isInteger(value) ? grouped(value) : trimmed(digits(value, 3))),
  number: (value) => trimmed(digits(value, 4)),
  factor: (value) => digits(value, 3) + "×",
  share: (value) => trimmed((value * 100).toFixed(1)) + "\u202f%",
  bytes: (value) => joined(scaled(value, PREFIXES, "B")),
  rate: (value) => joined(scaled(value, PREFIXES, "b/s")),
  speed: (value) => joined(scaled(value, PREFIXES, "/s")),
  time: (value) => (value === 0 ? "0\u202fs" : joined(scaled(value, TIMES, ""))),
};
function joined([value, unit]) {
  return trimmed(digits(value, 4)) + "\u202f" + unit;
}
/** Without the zeros that line numbers up in a column. */
function short(text) {
  return text.replace(/\.0+(?!\d)/, "");
}
function written(value, unit) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? FORMATS[unit](value) : String(value);
}

// ---- plots -------------------------------------------------------------------------------------------------------

const HEIGHT = 250;
const MARGIN = { top: 8, right: 14, bottom: 36, left: 68 };
/** How far down marks begin, and with them the lines of a plot that has some. */
const MARKED = 20;

/** The range of `values`, widened to what the axis asks for. */
function range(axis, values) {
  let from = axis.from ?? Infinity;
  let to = axis.to ?? -Infinity;
  for (const list of values) {
    for (const value of list) {
      if (value < from) from = value;
      if (value > to) to = value;
    }
  }
  if (from === to) return axis.log ? [from / 2, to * 2] : [Math.min(0, from), to > 0 ? to * 1.2 : 1];
  return [from, to];
}

/** Round values between `from` and `to`, about `wanted` of them. */
function ticks(from, to, wanted) {
  const rough = (to - from) / wanted;
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * decade).find((size) => size >= rough * 0.999);
  const marks = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) marks.push(n * step);
  return marks;
}
function logTicks(from, to) {
  const decades = Math.log10(to / from);
  const steps = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
  const marks = [];
  for (let decade = 10 ** Math.floor(Math.log10(from)); decade <= to; decade *= 10) {
    for (const step of steps) {
      const mark = decade * step;
      if (mark >= from * 0.999 && mark <= to * 1.001) marks.push(mark);
    }
  }
  return marks;
}

/** From a value to its place on the page, and back. */
function scale(axis, [from, to], start, end) {
  const bend = axis.log ? Math.log : (value) => value;
  const unbend = axis.log ? Math.exp : (value) => value;
  const slope = (end - start) / (bend(to) - bend(from));
  return {
    place: (value) => start + (bend(value) - bend(from)) * slope,
    value: (place) => unbend((place - start) / slope + bend(from)),
  };
}

/** The marks of a page in a plot over time: their times shaded, a line at the beginning and the end of each, and their numbers above. */
function marked(marks, across, x, bottom, right) {
  const inside = (at) => at >= across[0] && at <= across[1];
  const place = (at) => Math.min(right, Math.max(MARGIN.left, x.place(at)));
  const [shades, lines, labels] = [[], [], []];
  const text = ({ first, last }) => (first === last ? `${first}` : `${first}–${last}`);
  marks.forEach(({ name, from, until }, n) => {
    const number = n + 1;
    if (from > across[1] || (until ?? from) < across[0]) return;
    const title = () => drawn("title", {}, `${number}: ${name}`);
    if (until !== null) {
      const [left, end] = [place(from), place(until)];
      shades.push(drawn("rect", { class: "shade", x: left, width: end - left, y: MARKED, height: bottom - MARKED }, title()));
    }
    for (const at of until === null ? [from] : [from, until]) {
      if (!inside(at)) continue;
      const kind = until === null ? "mark change" : "mark";
      lines.push(drawn("line", { class: kind, x1: x.place(at), x2: x.place(at), y1: MARKED, y2: bottom }, title()));
    }
    const before = labels[labels.length - 1];
    const wanted = before ? 7 + 3.5 * (text(before).length + String(number).length) : 0;
    // Numbers that would overlap become a range, which stands where the first one of them does.
    if (before && place(from) - before.place < wanted) before.last = number;
    else labels.push({ first: number, last: number, place: place(from) });
  });
  const numbers = labels.map((label) => {
    const width = 3.5 * text(label).length;
    const middle = Math.min(right - width, Math.max(MARGIN.left + width, label.place));
    return drawn("text", { class: "number", x: middle, y: MARKED - 4, "text-anchor": "middle" }, text(label));
  });
  return { below: shades, above: [...lines, ...numbers] };
}

function path(line, x, y, step) {
  let text = "";
  let before = null;
  if (line.dots) return line.x.map((value, n) => `M${x.place(value).toFixed(1)} ${y.place(line.y[n]).toFixed(1)}h0`).join("");
  for (let n = 0; n < line.x.length; n++) {
    const [across, down] = [x.place(line.x[n]).toFixed(1), y.place(line.y[n]).toFixed(1)];
    if (before === null) text = `M${across} ${down}`;
    else text += step ? `H${across}V${down}` : `L${across} ${down}`;
    before = down;
  }
  return text;
}

/** The outline of what lies around a line: along the greatest, and back along the least. */
function outline(line, x, y, step) {
  const at = (list, n) => y.place(list[n]).toFixed(1);
  let text = path({ x: line.x, y: line.band.high }, x, y, step);
  for (let n = line.x.length - 1; n >= 0; n--) {
    const across = x.place(line.x[n]).toFixed(1);
    const down = at(line.band.low, n);
    text += n === line.x.length - 1 ? `V${down}` : step ? `V${down}H${across}` : `L${across} ${down}`;
  }
  return text + "Z";
}

/** The point of `line` that lies closest to a place on the page; -1 when none is close. */
function closest(line, { x, y }, across, down) {
  const apart = (n) => Math.hypot(x.place(line.x[n]) - across, y.place(line.y[n]) - down);
  const best = line.x.reduce((best, _, n) => (best < 0 || apart(n) < apart(best) ? n : best), -1);
  return best >= 0 && apart(best) < 14 ? best : -1;
}

/** The place in ascending `list` of the last value that is at most `value`; 0 when there is none. */
function placeOf(list, value) {
  let [low, high] = [0, list.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

function plot(data) {
  const hidden = new Set();
  const picture = drawn("svg", { role: "img", "aria-label": data.title });
  const tip = element("div", { class: "tip", hidden: "" });
  const figure = element("figure", { class: "plot" }, element("h3", {}, data.title), picture);
  const colour = (line) => `var(--c${line.colour % COLOURS})`;
  const happened = data.x.label === "time" ? page.marks ?? [] : [];
  let axes = null;
  let width = 0;

  function draw() {
    const shown = data.lines.filter((line) => !hidden.has(line));
    const scope = shown.length ? shown : data.lines;
    const across = range(data.x, scope.map((line) => line.x));
    const up = range(data.y, scope.flatMap((line) => (line.band ? [line.band.low, line.band.high] : [line.y])));
    if (data.y.to === null) up[1] += (up[1] - up[0]) * 0.06;
    const bottom = HEIGHT - MARGIN.bottom;
    const right = width - MARGIN.right;
    const x = scale(data.x, across, MARGIN.left, right);
    const y = scale(data.y, up, bottom, happened.length ? MARKED + 4 : MARGIN.top);
    axes = { x, y, bottom, right };
    const { below, above } = marked(happened, across, x, bottom, right);
    const parts = [...below];
    for (const mark of ticks(up[0], up[1], 5)) {
      const place = y.place(mark);
      parts.push(drawn("line", { class: "grid", x1: MARGIN.left, x2: right, y1: place, y2: place }));
      const label = short(written(mark, data.y.unit));
      parts.push(drawn("text", { x: MARGIN.left - 8, y: place + 4, "text-anchor": "end" }, label));
    }
    const room = Math.max(2, Math.floor((right - MARGIN.left) / 85));
    let marks = data.x.log ? logTicks(...across) : ticks(...across, room);
    if (marks.length < 2) marks = ticks(...across, room);
    if (data.x.unit === "count") marks = marks.filter(Number.isInteger);
    const every = Math.ceil(marks.length / (room + 1));
    marks.filter((_, n) => n % every === 0).forEach((mark) => {
      const place = x.place(mark);
      parts.push(drawn("line", { class: "axis", x1: place, x2: place, y1: bottom, y2: bottom + 4 }));
      const anchor = place > right - 20 ? "end" : "middle";
      parts.push(drawn("text", { x: place, y: bottom + 17, "text-anchor": anchor }, short(written(mark, data.x.unit))));
    });
    parts.push(drawn("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }));
    const title = data.x.label + (data.x.log ? " (logarithmic)" : "");
    const middle = (MARGIN.left + right) / 2;
    parts.push(drawn("text", { x: middle, y: HEIGHT - 4, "text-anchor": "middle" }, title));
    for (const line of shown.filter((line) => line.band)) {
      parts.push(drawn("path", { class: "band", style: `fill: ${colour(line)}`, d: outline(line, x, y, data.step) }));
    }
    for (const line of shown) {
      const kind = line.dots ? "line dots" : line.dashed ? "line dashed" : "line";
      parts.push(drawn("path", { class: kind, style: `stroke: ${colour(line)}`, d: path(line, x, y, data.step) }));
    }
    picture.replaceChildren(...parts, ...above);
  }

  /** Whether something is going on at a value, or is marked close to its place. */
  function isAt({ from, until }, value, place) {
    return (value >= from && value <= (until ?? from)) || Math.abs(axes.x.place(from) - place) < 5;
  }

  function point(event) {
    const box = picture.getBoundingClientRect();
    const at = event.clientX - box.left;
    const inside = axes && at >= MARGIN.left && at <= axes.right;
    picture.querySelector(".cursor")?.remove();
    tip.hidden = !inside;
    if (!inside) return;
    const value = axes.x.value(at);
    picture.append(drawn("line", { class: "cursor", x1: at, x2: at, y1: MARGIN.top, y2: axes.bottom }));
    const rows = data.lines
      .filter((line) => !hidden.has(line) && !line.dots && value >= line.x[0] && value <= line.x[line.x.length - 1])
      .map((line) => [line, line.y[placeOf(line.x, value)]])
      .sort((a, b) => b[1] - a[1]);
    for (const line of data.lines.filter((line) => line.dots && !hidden.has(line))) {
      const n = closest(line, axes, at, event.clientY - box.top);
      if (n >= 0) rows.push([line, line.y[n]]);
    }
    const around = ({ x, band }) => {
      if (!band) return "";
      const [low, high] = [band.low, band.high].map((list) => written(list[placeOf(x, value)], data.y.unit));
      return ` (${low} to ${high})`;
    };
    tip.replaceChildren(
      element("b", {}, written(value, data.x.unit)),
      ...happened.flatMap((mark, n) => (isAt(mark, value, at) ? [element("div", { class: "at" }, `${n + 1}: ${mark.name}`)] : [])),
      ...rows.map(([line, height]) =>
        element("div", {}, element("i", { style: `--colour: ${colour(line)}` }),
          `${line.name} ${written(height, data.y.unit)}${around(line)}`)),
    );
    const left = at + 14 + tip.offsetWidth < box.width ? at + 14 : Math.max(0, at - 14 - tip.offsetWidth);
    tip.style.left = `${left + picture.offsetLeft}px`;
    tip.style.top = `${picture.offsetTop + 12}px`;
  }

  const legend = element("div", { class: "legend" });
  for (const line of data.lines) {
    const button = element("button", {
      type: "button", "aria-pressed": "true", style: `--colour: ${colour(line)}`, class: line.dots ? "dots" : line.dashed ? "dashed" : "",
      title: "Click to hide or show; double-click to show it alone",
    }, line.name);
    button.addEventListener("click", () => {
      if (!hidden.delete(line)) hidden.add(line);
      refresh();
    });
    button.addEventListener("dblclick", () => {
      const alone = hidden.size === data.lines.length - 1 && !hidden.has(line);
      hidden.clear();
      if (!alone) data.lines.filter((other) => other !== line).forEach((other) => hidden.add(other));
      refresh();
    });
    legend.append(button);
  }
  function refresh() {
    [...legend.children].forEach((button, n) => button.setAttribute("aria-pressed", String(!hidden.has(data.lines[n]))));
    draw();
  }

  if (data.lines.length > 1 || data.lines[0].name !== "all flows") figure.append(legend);
  figure.append(tip);
  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerleave", () => {
    tip.hidden = true;
    picture.querySelector(".cursor")?.remove();
  });
  figure.resized = () => {
    const now = picture.clientWidth;
    if (now > 0 && now !== width) {
      width = now;
      draw();
    }
  };
  return figure;
}

// ---- tables ------------------------------------------------------------------------------------------------------

/** A mean, and below it half the width of its interval; what is too narrow for four digits is only said to be so. */
function estimate({ mean, half_width }, unit) {
  const narrow = half_width < Math.abs(mean) * 1e-4;
  const half = narrow ? "<\u202f0.01\u202f%" : FORMATS[unit](half_width);
  return element("span", {}, FORMATS[unit](mean), half_width > 0 ? element("small", {}, `±\u202f${half}`) : null);
}
function content(cell, unit) {
  if (cell === null || typeof cell !== "object") return written(cell, unit);
  return "href" in cell ? element("a", { href: cell.href }, cell.text) : estimate(cell, unit);
}
function key(cell) {
  return cell && typeof cell === "object" ? cell.text ?? cell.mean : cell;
}
/** Numbers by size, words as people count (`h2` before `h10`), nothing last. */
function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

/** `names` stand above the words that rows begin with. */
function table(names, { columns: rest, rows }) {
  const columns = [...names.map((name) => [name, "text"]), ...rest];
  const kind = (unit) => (unit === "text" ? "text" : "");
  const short = (cell, column) => (column < names.length && String(key(cell)).length <= 24 ? " short" : "");
  const body = element("tbody");
  const heads = columns.map(([label, unit], column) => {
    const head = element("th", { scope: "col", class: kind(unit) }, element("button", { type: "button" }, label));
    head.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      show([...rows].sort((a, b) => compare(key(a[column]), key(b[column])) * (descending ? -1 : 1)));
    });
    return head;
  });
  function show(list) {
    body.replaceChildren(...list.map((row) => element("tr", {}, ...row.map((cell, column) => {
      const unit = columns[column][1];
      return element("td", { class: kind(unit) + short(cell, column) }, content(cell, unit));
    }))));
  }
  show(rows);
  const head = element("thead", {}, element("tr", {}, ...heads));
  return element("div", { class: "table", tabindex: "0" }, element("table", {}, head, body));
}

// ---- the page ----------------------------------------------------------------------------------------------------

const page = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("page");
main.replaceChildren(element("header", {}, element("h1", {}, page.title), element("p", {}, page.subtitle)));
if (page.tiles.length) {
  main.append(element("div", { class: "tiles" }, ...page.tiles.map((tile) => element("div", { class: "tile" },
    element("span", {}, tile.label), element("b", {}, written(tile.value, tile.unit)), element("span", {}, tile.note)))));
}
for (const section of page.sections) {
  const plots = section.plots.map(plot);
  main.append(element("section", {},
    element("h2", {}, section.title),
    section.note ? element("p", {}, section.note) : null,
    plots.length ? element("div", { class: "plots" }, ...plots) : null,
    section.table ? table(section.names, section.table) : null,
    section.listing
      ? element("details", {}, element("summary", {}, "The scenario as it was run"), element("pre", {}, section.listing))
      : null));
}
main.append(element("footer", {}, "Made by Rocinante."));
const figures = [...document.querySelectorAll(".plot")];
const tiles = document.querySelector(".tiles");
/** As many tiles in a row as fit, and in each row about the same number. */
function spread() {
  const fit = Math.max(2, Math.floor((tiles.clientWidth + 12) / 160));
  const rows = Math.ceil(page.tiles.length / fit);
  tiles.style.setProperty("--columns", Math.ceil(page.tiles.length / rows));
}
const resize = () => {
  if (tiles) spread();
  figures.forEach((figure) => figure.resized());
};
resize();
addEventListener("resize", resize);
addEventListener("beforeprint", resize);
