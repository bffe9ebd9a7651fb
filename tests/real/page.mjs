// The live page in a real browser: it draws live numbers, fits a phone, loads nothing from elsewhere, and says when the
// proxy is gone and when it is back. Run by .ci/run with a built `heartline`:
//
//     NODE_PATH=… node tests/real/page.mjs target/debug/heartline [folder for screenshots]
//
// Needs Debian's chromium and npm's playwright-core, which is looked for along NODE_PATH.

import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer, get } from "node:http";
import assert from "node:assert/strict";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const [heartline, pictures] = process.argv.slice(2);
assert.ok(heartline, "usage: node tests/real/page.mjs HEARTLINE [FOLDER]");

const PATIENCE_MS = 20_000;
const STREAMS = 12;

const children = [];
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));

/** A free port of this machine. */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Starts `heartline` with `args`; resolves when it listens. */
function start(...args) {
  const child = spawn(heartline, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`heartline ${args[0]} ended with ${code}`)));
    child.stdout.on("data", (text) => String(text).includes("listening on") && resolve(child));
  });
}

function stop(child) {
  child.removeAllListeners("exit");
  child.kill("SIGKILL");
  return new Promise((resolve) => child.once("exit", resolve));
}

/** An engine whose streams send one event at once and then nothing; other paths are not answered at all. */
async function engine() {
  const server = createServer((request, response) => {
    if (request.url.startsWith("/waits")) return;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"token":"a"}\n\n');
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

/** Opens a stream through the proxy and reads it to its end; returns how to close it. */
function open(port, path) {
  const request = get({ host: "127.0.0.1", port, path, agent: false }, (response) => response.resume());
  request.on("error", () => {}); // the proxy is killed later
  return () => request.destroy();
}

async function until(what, probe) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const [is, seen] = await probe();
    if (is) return seen;
    assert.ok(Date.now() < deadline, `not in time: ${what}; seen: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const [listen, admin] = [await freePort(), await freePort()];
const proxied = async () =>
  start("proxy", "--upstream", upstream, "--interval", "1s", "--listen", `127.0.0.1:${listen}`, "--admin", `127.0.0.1:${admin}`);
const upstream = await engine();
let proxy = await proxied();
const url = `http://127.0.0.1:${admin}/`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});

const complaints = [];
const elsewhere = [];
/** A page that notes whatever goes wrong and every request that leaves the admin listener. */
async function visit(viewport, colorScheme) {
  const page = await (await browser.newContext({ viewport, colorScheme })).newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // That /events is refused while the proxy is away is the browser's own remark.
    if (message.type() === "error" && !message.text().includes("ERR_")) complaints.push(message.text());
  });
  page.on("request", (request) => request.url().startsWith(url) || elsewhere.push(request.url()));
  await page.goto(url);
  return page;
}
const text = (page, selector) => page.locator(selector).innerText();
const link = (page) => page.evaluate(() => document.body.dataset.link);
const shown = (page, name) => pictures && page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
if (pictures) mkdirSync(pictures, { recursive: true });

// Empty: zeros, not dashes.
const page = await visit({ width: 1280, height: 900 }, "light");
await until("the page is live", async () => [(await link(page)) === "live"]);
assert.equal(await text(page, "#streams"), "0");
assert.equal(await text(page, "#none"), "No request is under way.");
await shown(page, "empty");

// Live numbers.
const close = Array.from({ length: STREAMS }, () => open(listen, "/v1/chat/completions"));
close.push(open(listen, encodeURI("/v1/chat/") + "%3Cimg%20src=x%20onerror=document.title=1%3E"));
close.push(open(listen, "/waits"));
await until("all streams are shown", async () => {
  const seen = await text(page, "#streams");
  return [seen === String(STREAMS + 1), seen];
});
const title = `${STREAMS + 1} streams · heartline proxy`;
assert.equal(await page.title(), title);
await until("heartbeats are counted", async () => {
  const seen = Number((await text(page, "#heartbeats")).replaceAll(",", ""));
  return [seen > 2 * STREAMS, seen];
});
await until("one request waits for its engine", async () => {
  const seen = await text(page, "#others");
  return [seen === "1", seen];
});
await until("a hop's cut is avoided: Fastly's, after 10 s", async () => {
  const seen = await page.locator("#hops tr").nth(1).innerText();
  return [/^Fastly\s+10 s\s+13$/.test(seen.trim()), seen];
});
const histogram = await page.locator("#histogram").getAttribute("aria-label");
assert.match(histogram, /10–20 seconds: engine 13, on the wire 0/);
assert.match(histogram, /0–1 seconds: engine 0, on the wire \d+/);
assert.equal(await page.locator("#worst tr").count(), 12);
const paths = await page.locator("#worst td:first-child").allInnerTexts();
assert.ok(paths.includes("/v1/chat/completions"), paths);
assert.equal(await page.locator("#worst img").count(), 0);
const heights = await page.evaluate(() => [...document.querySelectorAll("b.engine")].map((bar) => bar.getBoundingClientRect().height));
assert.ok(Math.max(...heights) > 100, `bars are drawn: ${heights}`);
await shown(page, "light");

// A phone, in the dark.
const phone = await visit({ width: 360, height: 780 }, "dark");
await until("the phone is live", async () => [(await link(phone)) === "live"]);
for (const width of [320, 360, 414, 768, 1024]) {
  await phone.setViewportSize({ width, height: 780 });
  const [scroll, wide] = await phone.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(scroll <= wide, `${width} wide scrolls to ${scroll}`);
}
await phone.setViewportSize({ width: 360, height: 780 });
const ground = await phone.evaluate(() => getComputedStyle(document.body).backgroundColor);
assert.notEqual(ground, await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "dark is dark");
await shown(phone, "phone-dark");
await phone.context().close();

// Every text stands out from its ground by 4.5 to 1 or more, in light and dark (WCAG 2.2, 1.4.3).
for (const colorScheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme });
  await page.waitForTimeout(600); // colours fade
  const faint = await page.evaluate(() => {
    const channels = (color) => color.match(/[\d.]+/g).map(Number);
    const luminance = ([red, green, blue]) => {
      const linear = [red, green, blue].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
      if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) || !element.checkVisibility()) continue;
      let ground = element;
      while (ground && (channels(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
      const pair = [getComputedStyle(element).color, getComputedStyle(ground ?? document.body).backgroundColor];
      const [light, dark] = pair.map((color) => luminance(channels(color))).sort((a, b) => b - a);
      const contrast = (light + 0.05) / (dark + 0.05);
      if (contrast < 4.5) found.push(`${element.tagName} “${element.textContent.trim()}” ${contrast.toFixed(2)}`);
    }
    return found;
  });
  assert.deepEqual(faint, [], `too faint in ${colorScheme}`);
}
await page.emulateMedia({ colorScheme: "light" });

// The proxy goes: the page says so and keeps the last figures. It comes back: so does the page, by itself.
await stop(proxy);
await until("the loss is shown", async () => [(await link(page)) === "lost"]);
assert.equal(await text(page, "#link"), "connection lost");
assert.ok(await page.locator("#notice").isVisible());
assert.equal(await text(page, "#streams"), String(STREAMS + 1));
await page.waitForTimeout(400);
await shown(page, "lost");
proxy = await proxied();
await until("the page is live again", async () => [(await link(page)) === "live"]);
await until("it shows the new proxy", async () => {
  const seen = await text(page, "#streams");
  return [seen === "0", seen];
});
assert.ok(!(await page.locator("#notice").isVisible()));

assert.deepEqual(complaints, [], "nothing went wrong in the page");
assert.deepEqual(elsewhere, [], "nothing was asked of anyone else");
close.forEach((end) => end());
await browser.close();
await stop(proxy);
console.log("page: live numbers, phone, contrast, loss and return: all as they should be");
process.exit(0);
