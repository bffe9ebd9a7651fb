// The live page: draws each snapshot that /events sends, and says so when none comes. Loads nothing else.
// Text from requests reaches the page through textContent only.

const SECONDS_SHOWN = 180; // of the trend
const SILENT_AFTER_MS = 4_000; // snapshots come once a second
const RECONNECT_AFTER_MS = 15_000; // a connection that hangs without an error
const RETRY_MS = 2_000; // after a refusal, which EventSource takes as final

const at = (id) => document.getElementById(id);
const counts = new Intl.NumberFormat("en");
const count = (number) => counts.format(number);
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
/** Whole while it fits into `digits`, then like 18.1M. */
const brief = (number, digits) => (number < 10 ** digits ? count(number) : short.format(number));

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function time(ms) {
  if (ms === null) return "–";
  const seconds = Math.floor(ms / 1000);
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (seconds < 100) return `${seconds} s`;
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 6000) return `${Math.floor(seconds / 60)}:${two(seconds % 60)} min`;
  return `${count(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)} h`;
}

function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return `${unit === "B" || value >= 100 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

function make(tag, name, parent) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  parent?.append(element);
  return element;
}

/** As many children of `parent` as `items`, made by `build` once and filled by `fill` each time. */
function list(parent, items, build, fill) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  while (parent.children.length < items.length) parent.append(build());
  items.forEach((item, index) => fill(parent.children[index], item, index));
}

// ---- the figures -------------------------------------------------------------------------------------------------------

const trend = []; // { streams, heartbeats, at }

function drawTiles(now) {
  if (now.uptime_ms < (trend.at(-1)?.at ?? 0)) trend.length = 0; // another process
  trend.push({ streams: now.streams, heartbeats: now.heartbeats, at: now.uptime_ms });
  while (trend.length > SECONDS_SHOWN) trend.shift();

  put(at("streams"), brief(now.streams, 6));
  const connections = `${count(now.connections)} ${now.connections === 1 ? "connection" : "connections"}`;
  put(at("streams-note"), now.tunnels ? `${connections}, ${count(now.tunnels)} tunnels` : connections);
  put(at("heartbeats"), brief(now.heartbeats, 7));
  const before = trend[Math.max(0, trend.length - 11)];
  const seconds = (now.uptime_ms - before.at) / 1000;
  if (seconds > 0) put(at("heartbeats-note"), `${((now.heartbeats - before.heartbeats) / seconds).toFixed(1)} a second`);
  put(at("bridged"), now.bridged_ms_max ? time(now.bridged_ms_max) : "none yet");
  put(at("ended-note"), `${brief(now.ended, 5)} ended in ${time(now.uptime_ms)}`);
  const avoided = (limit) => brief(now.hops.find((hop) => hop.limit_s === limit)?.avoided ?? 0, 7);
  put(at("avoided"), avoided(60));
  put(at("avoided-note"), `${avoided(100)} at 100 s (Cloudflare)`);
  put(at("others"), brief(now.others, 6));

  const most = Math.max(1, ...trend.map((moment) => moment.streams));
  const points = trend.map((moment, index) => {
    const x = (180 * index) / Math.max(1, trend.length - 1);
    return `${x.toFixed(1)} ${(38 - (34 * moment.streams) / most).toFixed(1)}`;
  });
  at("trend").setAttribute("d", `M${points.join("L")}`);
  at("area").setAttribute("d", `M${points.join("L")}L180 40L0 40Z`);
}

function drawHistogram({ below_s: below, engine, wire }) {
  const most = Math.max(1, ...engine, ...wire);
  const names = engine.map((_, index) => {
    const from = index ? below[index - 1] : 0;
    return index === below.length ? [`${from}`, "+"] : [`${from}`, `–${below[index]}`];
  });
  const build = () => {
    const slot = make("div", "slot");
    for (const series of ["engine", "wire"]) {
      const bar = make("span", "bar", slot);
      make("span", "", bar);
      make("b", series, bar);
    }
    const name = make("small", "", slot);
    make("span", "", name);
    make("span", "to", name);
    return slot;
  };
  list(at("histogram"), names, build, (slot, name, index) => {
    [engine[index], wire[index]].forEach((streams, series) => {
      const [label, bar] = slot.children[series].children;
      put(label, streams ? brief(streams, 3).replace(/(\.\d)\d/, "$1") : "");
      // Room for the label stays free; one stream among thousands is still seen.
      bar.style.height = streams ? `max(3px, ${(88 * streams) / most}%)` : "0";
    });
    const [from, to] = slot.lastElementChild.children;
    put(from, name[0]);
    put(to, name[1]);
  });
  const told = names.flatMap((name, index) =>
    engine[index] || wire[index] ? [`${name.join("")} seconds: engine ${engine[index]}, on the wire ${wire[index]}`] : [],
  );
  at("histogram").setAttribute("aria-label", told.length ? told.join("; ") : "no live stream");
}

function drawHops(hops, interval) {
  const build = () => {
    const row = make("tr");
    const name = make("td", "", row);
    make("span", "", name);
    make("em", "", name).textContent = "▲ still cuts";
    make("td", "number", row);
    const meter = make("td", "meter", row);
    meter.setAttribute("aria-hidden", "true");
    make("b", "wire", meter);
    make("td", "number avoided", row);
    return row;
  };
  const most = Math.max(1, ...hops.map((hop) => hop.avoided));
  list(at("hops"), hops, build, (row, hop) => {
    const [name, limit, meter, avoided] = row.children;
    put(name.firstElementChild, hop.name);
    name.lastElementChild.hidden = hop.is_covered;
    put(limit, `${hop.limit_s} s`);
    meter.firstElementChild.style.width = hop.avoided ? `max(2px, ${(100 * hop.avoided) / most}%)` : "0";
    put(avoided, count(hop.avoided));
    avoided.classList.toggle("zero", hop.avoided === 0);
  });
  const note = at("hops-note");
  note.hidden = hops.every((hop) => hop.is_covered);
  put(note, `▲ A heartbeat comes every ${time(interval).replace(".0", "")}, too late for these hops. Shorten --interval if you are behind one.`);
}

const COLUMNS = [
  ["path", (row) => row.path],
  ["engine", (row) => row.upstream || "–"],
  ["engine silent", (row) => time(row.content_silence_ms)],
  ["wire silent", (row) => time(row.silence_ms)],
  ["age", (row) => time(row.age_ms)],
  ["heartbeats", (row) => count(row.heartbeats)],
  ["bytes", (row) => size(row.bytes)],
  ["form", (row) => row.form ?? "none"],
];

function drawWorst(rows) {
  const build = () => {
    const row = make("tr");
    row.setAttribute("role", "row");
    COLUMNS.forEach(([name], index) => {
      const cell = make("td", index > 1 && index < 7 ? "number" : "", row);
      cell.setAttribute("role", "cell");
      cell.dataset.name = name;
    });
    return row;
  };
  list(at("worst"), rows, build, (row, stream) => {
    COLUMNS.forEach(([, text], index) => put(row.children[index], text(stream)));
    row.children[2].classList.toggle("over", stream.content_silence_ms > 60_000);
  });
  at("none").hidden = rows.length > 0;
  for (const part of document.querySelectorAll(".worst, .more")) part.hidden = rows.length === 0;
}

function draw(now) {
  drawTiles(now);
  drawHistogram(now.silence);
  drawHops(now.hops, now.interval_ms);
  drawWorst(now.worst);
  const phase = at("phase");
  phase.hidden = false;
  put(phase, now.phase);
  phase.classList.toggle("draining", now.phase !== "serving");
  put(at("about"), `heartline ${now.version}, up ${time(now.uptime_ms)}${now.reloads ? `, reloads: ${now.reloads}` : ""}`);
  document.title = `${count(now.streams)} ${now.streams === 1 ? "stream" : "streams"} · heartline proxy`;
}

// ---- the connection ----------------------------------------------------------------------------------------------------

let source;
let heard = performance.now();
let began = heard;

function show(link) {
  if (document.body.dataset.link !== link) {
    document.body.dataset.link = link;
    put(at("link"), link === "lost" ? "connection lost" : link);
  }
  const notice = at("notice");
  notice.hidden = link !== "lost";
  if (link === "lost") put(notice, "The connection to the proxy is lost; these are the last figures. Trying again.");
  else put(notice, "");
}

function connect() {
  source?.close();
  began = performance.now();
  source = new EventSource("events");
  source.onmessage = (message) => {
    heard = performance.now();
    show("live");
    draw(JSON.parse(message.data));
  };
  source.onerror = () => {
    show("lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
  };
}

setInterval(() => {
  const now = performance.now();
  if (now - heard < SILENT_AFTER_MS || now - began < SILENT_AFTER_MS) return;
  show("lost");
  if (now - Math.max(heard, began) > RECONNECT_AFTER_MS) connect();
}, 1_000);

connect();
