"use strict";
// Draws the report that the element #data holds. Only textContent and attributes are written: nothing in the data is markup.

const data = JSON.parse(document.getElementById("data").textContent);
const NARROW = matchMedia("(max-width: 44rem)");

const count = (number) => Math.round(number).toLocaleString("en");

/** A time with the unit that fits it. */
function time(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms.toPrecision(3).replace(/\.0+$/, "")} ms`;
  if (ms < 60_000) return `${(ms / 1000).toPrecision(4).replace(/\.?0+$/, "")} s`;
  return `${(ms / 1000).toFixed(1)} s`;
}

const share = (part, whole) => (whole ? `${Math.min(part < whole ? 99.99 : 100, (100 * part) / whole).toFixed(2).replace(/\.?0+$/, "")} %` : "–");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const into = (id, ...children) => document.getElementById(id).replaceChildren(...children);
const row = (name, ...values) => element("tr", {}, element("th", { scope: "row" }, name), ...values);
const cell = (text, kind = "number") => element("td", { class: kind }, text);

/** A drawing area with its margins; `width` follows the screen so that letters keep their size. */
function sheet(id, height, label) {
  const place = document.getElementById(id);
  const width = Math.max(280, place.clientWidth);
  const inner = { left: 52, right: width - 12, top: 22, bottom: height - 24 };
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  place.replaceChildren(drawing);
  return { ...inner, width, height, drawing, add: (name, attributes, text) => drawing.appendChild(svg(name, attributes, ...(text === undefined ? [] : [text]))) };
}

function nothing(id, why) {
  into(id, element("p", { class: "empty" }, why));
}

const scale = (from, to, low, high) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);

/** Round numbers from 0 to at least `most`. */
function steps(most, wanted = 4) {
  const rough = Math.max(most, 1e-9) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, number) => number * step);
}

function rows(area, marks, y, text) {
  for (const mark of marks) {
    area.add("line", { class: "grid", x1: area.left, x2: area.right, y1: y(mark), y2: y(mark) });
    area.add("text", { x: area.left - 6, y: y(mark) + 4, "text-anchor": "end" }, text(mark));
  }
}

const brief = (number) => (number >= 1e6 ? `${number / 1e6}M` : number >= 1e4 ? `${number / 1e3}k` : String(Math.round(number * 100) / 100));
const tick = (ms) => (ms < 1 ? `${Math.round(ms * 1000)} µs` : ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);

/** Powers of ten around the times. */
function decades(low, high) {
  const marks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) marks.push(10 ** power);
  return marks.map((mark) => Number(mark.toPrecision(1)));
}

/** Marks around the times: powers of ten, and where these are few, 2 and 5 between them, no further out than needed. */
function logarithmic(low, high) {
  const powers = decades(low, high);
  if (powers.length > 4) return powers;
  const marks = powers.flatMap((power) => [1, 2, 5].map((factor) => Number((power * factor).toPrecision(1))));
  const first = marks.findLastIndex((mark) => mark <= low);
  const last = marks.findIndex((mark) => mark >= high);
  return marks.slice(Math.max(0, first), last < 0 ? marks.length : last + 1);
}

/** Says whether a text so wide has room at `x`, once for each text from left to right. */
function room(wide) {
  let taken = -Infinity;
  return (x) => {
    const has = x - wide / 2 > taken;
    if (has) taken = x + wide / 2;
    return has;
  };
}

function silence() {
  const curve = data.curves.silence;
  if (!curve) return nothing("silence", "No stream was open in the hold phase.");
  const most = Math.max(...curve.bins.map((bin) => bin[2]));
  const top = steps(most);
  const area = sheet("silence", 240, `silences of ${count(curve.count)} streams, from ${time(curve.ms[0])} to ${time(curve.ms.at(-1))}`);
  const marks = decades(Math.min(100, curve.bins[0][0]), Math.max(130_000, curve.bins.at(-1)[1]));
  const low = marks[0];
  const high = Math.max(150_000, curve.bins.at(-1)[1] * 1.1);
  const x = scale(Math.log10(low), Math.log10(high), area.left, area.right);
  const y = scale(0, top.at(-1), area.bottom, area.top + 8);
  rows(area, top, y, brief);
  for (const mark of marks.filter((mark) => mark <= high)) {
    area.add("text", { x: x(Math.log10(mark)), y: area.bottom + 16, "text-anchor": "middle" }, tick(mark));
  }
  // Limits that lie close together take turns in height; where there is no room the line stands alone.
  const levels = [room(34), room(34)];
  for (const hop of data.hops) {
    const at = x(Math.log10(hop.seconds * 1000));
    area.add("line", { class: "hop", x1: at, x2: at, y1: area.top, y2: area.bottom });
    const level = levels.findIndex((has) => has(at));
    if (level >= 0) area.add("text", { class: "hop-name", x: at, y: area.top - (level ? 12 : 2), "text-anchor": "middle" }, `${hop.seconds} s`);
  }
  const limit = data.hops[0].seconds * 1000;
  for (const [from, to, streams] of curve.bins) {
    const [left, right] = [x(Math.log10(from)), x(Math.log10(to))];
    const bar = area.add("rect", {
      class: from >= limit ? "bar over" : "bar", x: left + 0.5, width: Math.max(2, right - left - 1), y: Math.min(y(streams), area.bottom - 2), height: Math.max(2, area.bottom - y(streams)), rx: 2,
    });
    bar.append(svg("title", {}, `${count(streams)} streams: ${time(from)} to ${time(to)}`));
  }
}

function line(points, x, y) {
  return points.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
}

function overTime(id, height, label, series, note) {
  const points = data.timeline?.points ?? [];
  if (points.length < 2) return nothing(id, "The run was too short to be drawn over time.");
  const end = points.at(-1).at_ms / 1000;
  const most = Math.max(1, ...series.flatMap(({ values }) => values.map(([, value]) => value)));
  const area = sheet(id, height, label);
  const marks = steps(most, 3);
  const x = scale(0, end, area.left, area.right);
  const y = scale(0, marks.at(-1), area.bottom, area.top - 10);
  const from = data.timeline.hold_from_ms;
  if (from !== null) {
    const left = Math.min(from / 1000, end);
    const right = Math.min(end, left + data.hold.length_ms / 1000);
    area.add("rect", { class: "phase", x: x(left), y: area.top - 10, width: Math.max(0, x(right) - x(left)), height: area.bottom - area.top + 10 });
  }
  rows(area, marks, y, brief);
  for (const second of steps(end, NARROW.matches ? 3 : 5).filter((second) => second <= end)) {
    area.add("text", { x: x(second), y: area.bottom + 16, "text-anchor": "middle" }, `${brief(second)} s`);
  }
  for (const { values, color, filled } of series) {
    const path = line(values, x, y);
    if (filled) area.add("path", { class: "area", d: `${path}L${x(values.at(-1)[0])} ${area.bottom}L${x(values[0][0])} ${area.bottom}Z` });
    area.add("path", { class: "curve", d: path, stroke: `var(--${color})` });
  }
  points.forEach((point, index) => {
    const left = x(point.at_ms / 1000);
    const right = index + 1 < points.length ? x(points[index + 1].at_ms / 1000) : area.right;
    const strip = area.add("rect", { class: "hover", x: left, y: area.top - 10, width: Math.max(1, right - left), height: area.bottom - area.top + 10 });
    strip.append(svg("title", {}, `${time(point.at_ms)}: ${note(index)}`));
  });
}

function held() {
  const points = data.timeline?.points ?? [];
  overTime("held", 190, `streams open over time, at most ${count(Math.max(0, ...points.map((point) => point.open)))}`, [
    { values: points.map((point) => [point.at_ms / 1000, point.open]), color: "wire", filled: true },
  ], (index) => `${count(points[index].open)} open, ${count(points[index].ended)} over`);
  // What came, by the second: as long a look back as a second, or a step where that is longer.
  const rate = (key) => points.map((point, index) => {
    let back = index;
    while (back > 0 && point.at_ms - points[back].at_ms < 1000) back--;
    const seconds = (point.at_ms - points[back].at_ms) / 1000;
    return [point.at_ms / 1000, seconds > 0 ? (point[key] - points[back][key]) / seconds : 0];
  });
  const [heartbeats, events] = [rate("heartbeats"), rate("events")];
  overTime("rates", 150, "heartbeats and events a second over time", [
    { values: heartbeats, color: "wire" }, { values: events, color: "event" },
  ], (index) => `${count(heartbeats[index][1])} heartbeats/s, ${count(events[index][1])} events/s`);
}

function percentiles() {
  const wanted = [["silence", "silence", "wire"], ["ttft", "until the first event", "event"], ["gap", "between two events", "third"], ["headers", "until headers", "fourth"]];
  const shown = wanted.filter(([name]) => data.curves[name]);
  if (!shown.length) return nothing("percentiles", "Nothing was measured.");
  into("percentiles-legend", ...shown.map(([, text, color]) => element("li", {}, element("i", { style: `color: var(--${color})` }), text)));
  const area = sheet("percentiles", 280, `percentiles of ${shown.map(([, text]) => text).join(", ")}`);
  // 90 %, 99 %, 99.9 % are equally far apart; the largest of all stands after the last.
  const nines = (quantile) => (quantile >= 1 ? 4.4 : -Math.log10(1 - quantile));
  const all = shown.flatMap(([name]) => data.curves[name].ms).filter((ms) => ms > 0);
  const marks = logarithmic(Math.max(0.001, Math.min(...all)), Math.max(...all, 0.01));
  const x = scale(0, 4.4, area.left, area.right - 14);
  const y = scale(Math.log10(marks[0]), Math.log10(marks.at(-1)), area.bottom, area.top - 8);
  rows(area, marks, (mark) => y(Math.log10(mark)), tick);
  const has = room(NARROW.matches ? 38 : 44);
  for (const [quantile, text] of [[0, "0"], [0.5, "50"], [0.9, "90"], [0.99, "99"], [0.999, "99.9"], [0.9999, "99.99"], [1, "all"]]) {
    const at = x(nines(quantile));
    area.add("line", { class: "grid", x1: at, x2: at, y1: area.top - 8, y2: area.bottom });
    if (has(at)) area.add("text", { x: at, y: area.bottom + 16, "text-anchor": "middle" }, quantile >= 1 ? text : `${text} %`);
  }
  for (const [name, text, color] of shown) {
    const { quantiles, ms } = data.curves[name];
    const points = quantiles.map((quantile, index) => [nines(quantile), Math.log10(Math.max(ms[index], marks[0]))]);
    area.add("path", { class: "curve", d: line(points, x, y), stroke: `var(--${color})` });
    points.forEach(([at, log], index) => {
      const dot = area.add("circle", { cx: x(at), cy: y(log), r: 3.5, fill: `var(--${color})` });
      dot.append(svg("title", {}, `${text}: ${(quantiles[index] * 100).toFixed(2).replace(/\.?0+$/, "")} % at most ${time(ms[index])}`));
    });
  }
}

function hops() {
  const streams = data.curves.silence?.count ?? 0;
  let unknown = false;
  into("hops", ...data.hops.map((hop) => {
    const known = hop.cut > 0 || data.hold.length_ms >= hop.seconds * 1000;
    unknown ||= !known;
    const bar = element("b", { style: `width: ${streams ? Math.max(hop.cut ? 1 : 0, (100 * hop.cut) / streams) : 0}%` });
    const text = known ? (hop.cut ? `${count(hop.cut)} (${share(hop.cut, streams)})` : "0") : "?";
    return row(hop.names, cell(`${hop.seconds} s`), element("td", { class: "meter", "aria-hidden": "true" }, element("div", {}, bar)), cell(text, `number ${known ? (hop.cut ? "cut" : "safe") : "unknown"}`));
  }));
  const note = document.getElementById("short");
  note.hidden = !unknown;
  note.textContent = `?: held for ${time(data.hold.length_ms)}, too short a time to tell.`;
}

function figures() {
  const { streams, client, settings, heartbeats, events } = data;
  const failed = Object.values(streams.failed).reduce((sum, number) => sum + number, 0);
  const valid = document.getElementById("valid");
  const broken = (data.thresholds ?? []).filter((rule) => rule.passed === false).length;
  valid.textContent = client.valid ? (broken ? `valid, ${broken} ${broken > 1 ? "rules" : "rule"} broken` : "valid run") : "invalid run";
  valid.classList.toggle("bad", !client.valid || broken > 0);
  document.getElementById("reasons").hidden = client.valid;
  into("reasons", ...client.reasons.map((reason) => element("li", {}, reason)));
  into("target", `${settings.method} ${settings.url}`);
  const shapes = { hold: "all held", complete: "each to its end", closed: "closed loop", open: "open loop" };
  into("when", `${new Date(data.hold.from_unix_ms).toISOString().replace("T", " ").slice(0, 19)} UTC, ${time(data.hold.length_ms)}, ${shapes[settings.shape] ?? settings.shape}, ${settings.protocol === "http2" ? "HTTP/2" : "HTTP/1.1"}`);

  const tile = (name, figure, note, bad) =>
    element("div", {}, element("dt", {}, name), element("dd", { class: `figure${bad ? " bad" : ""}` }, figure), element("dd", {}, note));
  into("tiles",
    tile("Held at once", count(streams.held_min), `least, of ${count(streams.requested)} asked for`, settings.shape === "hold" && streams.held_min < streams.requested),
    tile("Longest silence", time(data.silence_ms?.max), `p99.9 ${time(data.silence_ms?.p99_9)}`),
    tile("First event, p99", time(data.ttft_ms?.p99), `p50 ${time(data.ttft_ms?.p50)}`),
    tile("Events", count(events.total), `${brief(events.per_second)} a second`),
    tile("Heartbeats", count(heartbeats.total), heartbeats.period_ms ? `every ${time(heartbeats.period_ms)}, ${count(heartbeats.missed)} missed` : `${heartbeats.per_stream} a stream`),
    tile("Failed", count(failed), share(failed, streams.requested), failed > 0));

  const names = [["Silence", "silence_ms"], ["Until connected", "connect_ms"], ["Until headers", "headers_ms"], ["Until the first byte", "first_byte_ms"], ["Until the first heartbeat", "first_heartbeat_ms"], ["Until the first event", "ttft_ms"], ["… from when it was sent", "ttft_from_send_ms"], ["Between two events", "gap_ms"]];
  const table = names.map(([name, key]) => [name, data[key]]);
  table.push(["Heartbeat jitter", heartbeats.jitter_ms], ["Begun late by", data.begin_late_ms], ["Client timers late by", client.lag_ms]);
  into("times", ...table.filter(([, found]) => found).map(([name, found]) => row(name, ...["p50", "p90", "p99", "p99_9", "max"].map((key) => cell(time(found[key]))))));

  const kinds = Object.entries(streams.failed).sort(([, one], [, other]) => other - one);
  into("failed", ...(kinds.length ? kinds.map(([kind, number]) => row(element("code", {}, kind), cell(`${count(number)} (${share(number, streams.requested)})`, "number cut"))) : [row("none", cell(""))]));
  const beats = Object.entries(heartbeats.kinds).sort(([, one], [, other]) => other - one);
  into("beats", ...(beats.length ? beats.map(([kind, number]) => row(element("code", {}, kind), cell(count(number)))) : [row("none", cell(""))]));
  const asked = Object.entries(settings).filter(([, value]) => value !== null);
  into("settings", ...asked.map(([name, value]) => (name.endsWith("_ms") ? row(name.slice(0, -3).replaceAll("_", " "), cell(time(value), "")) : row(name.replaceAll("_", " "), cell(String(value), "")))));
  const parts = data.settings.shards > 1 ? `part ${data.shard.index} of ${data.shard.of}, ` : "";
  into("about", `${parts}client busy ${client.cpu_percent} % of a core · heartline ${data.version}`);

  const rules = data.thresholds ?? [];
  document.getElementById("rules").closest("table").hidden = !rules.length;
  document.getElementById("rules").closest("table").previousElementSibling.hidden = !rules.length;
  into("rules", ...rules.map((rule) => row(element("code", {}, rule.rule), cell(`${rule.shown}, ${rule.passed ? "kept" : "broken"}`, `number ${rule.passed ? "safe" : "cut"}`))));
}

function charts() {
  silence();
  held();
  percentiles();
}

figures();
hops();
charts();
let pending;
addEventListener("resize", () => {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(charts);
});
document.body.dataset.drawn = "yes";
