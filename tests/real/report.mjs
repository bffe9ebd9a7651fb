// The report page in a real browser: it shows the run's own numbers, works from a file with no network, fits a phone, is
// legible in light and dark, and says so when a run is invalid. Run by .ci/run with a built `heartline`:
//
//     NODE_PATH=… node tests/real/report.mjs target/debug/heartline FOLDER
//
// Needs Debian's chromium and npm's playwright-core, which is looked for along NODE_PATH. FOLDER gets the pages and pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const [heartline, folder] = process.argv.slice(2);
assert.ok(heartline && folder, "usage: node tests/real/report.mjs HEARTLINE FOLDER");
mkdirSync(folder, { recursive: true });

const STREAMS = 40;

/** Runs a load and resolves with its report, the page's address and the exit code. */
function load(name, ...args) {
  const [json, html] = ["json", "html"].map((form) => resolve(folder, `${name}.${form}`));
  const child = spawn(heartline, ["load", ...args, "--json", json, "--html", html], { stdio: ["ignore", "ignore", "inherit"] });
  return new Promise((done) => {
    child.once("exit", (code) => done({ code, report: JSON.parse(readFileSync(json)), page: `file://${html}` }));
  });
}

/** Streams that say a token now and then and a heartbeat in between; every tenth is closed halfway. */
async function engine() {
  let number = 0;
  const server = createServer((request, response) => {
    const mine = number++;
    response.writeHead(200, { "content-type": "text/event-stream" });
    let said = 0;
    const timer = setInterval(() => {
      said += 1;
      response.write(said % 3 === 0 ? 'data: {"token":"a"}\n\n' : ": <b>still here</b>\n\n");
      if (mine % 10 === 9 && said === 12) response.destroy();
    }, 150 + 7 * (mine % 10));
    response.on("close", () => clearInterval(timer));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}/events`, close: () => server.close() };
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});
const complaints = [];
const elsewhere = [];

/** Opens a page with no network at all; notes whatever goes wrong and whatever it asks for. */
async function visit(address, viewport, colorScheme, javaScriptEnabled = true) {
  const context = await browser.newContext({ viewport, colorScheme, javaScriptEnabled, offline: true });
  const page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("request", (request) => request.url() === address || elsewhere.push(request.url()));
  await page.goto(address);
  return page;
}
const text = (page, selector) => page.locator(selector).innerText();
const picture = (page, name) => page.screenshot({ path: resolve(folder, `${name}.png`), fullPage: true });
const number = (shown) => Number(shown.replaceAll(",", ""));

// A run that goes well.
const server = await engine();
const held = await load("events", server.url, "--streams", String(STREAMS), "--rate", "100/s", "--hold", "4s", "--interval", "1s");
server.close();
const { report } = held;
assert.equal(report.streams.opened, STREAMS);
const page = await visit(held.page, { width: 1280, height: 900 }, "light");
assert.equal(await page.evaluate(() => document.body.dataset.drawn), "yes");
assert.equal(await text(page, "#valid"), report.client.valid ? "valid run" : "invalid run");
assert.equal(await text(page, "#target"), `GET ${server.url}`);
const tile = async (name) => number(await text(page, `.tiles div:has(dt:text-is("${name}")) .figure`));
assert.equal(await tile("Held at once"), report.streams.held_min);
assert.equal(await tile("Events"), report.events.total);
assert.equal(await tile("Heartbeats"), report.heartbeats.total);
const failed = Object.values(report.streams.failed).reduce((sum, streams) => sum + streams, 0);
assert.equal(failed, STREAMS / 10);
assert.equal(await tile("Failed"), failed);
const silences = await page.locator("#silence rect.bar title").allTextContents();
assert.equal(silences.map((title) => number(title.split(" ")[0])).reduce((sum, streams) => sum + streams, 0), STREAMS);
assert.match(await page.locator("#held svg").getAttribute("aria-label"), new RegExp(`at most ${STREAMS}$`));
const line = await page.locator("#held path.curve").boundingBox();
assert.ok(line.width > 200 && line.height > 50, `a line is drawn: ${JSON.stringify(line)}`);
assert.equal(await page.locator("#percentiles path.curve").count(), 4);
assert.equal(await page.locator("#hops tr").count(), 13);
assert.match(await text(page, "#hops tr:nth-child(2)"), /Fastly\s+10 s\s+\?/);
assert.match(await text(page, "#beats"), /<b>still here<\/b>/, "what a server sends stays text");
assert.equal(await page.locator("#beats b").count(), 0);
assert.match(await text(page, "#settings"), /interval\s+1 s/);
await picture(page, "light");

// A phone, in the dark, at every width.
const phone = await visit(held.page, { width: 360, height: 780 }, "dark");
for (const width of [320, 360, 414, 768, 1024]) {
  await phone.setViewportSize({ width, height: 780 });
  await phone.waitForTimeout(60); // the charts are drawn anew
  const [scroll, wide] = await phone.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(scroll <= wide, `${width} wide scrolls to ${scroll}`);
}
await phone.setViewportSize({ width: 360, height: 780 });
await phone.waitForTimeout(60);
const ground = (of) => of.evaluate(() => getComputedStyle(document.body).backgroundColor);
assert.notEqual(await ground(phone), await ground(page), "dark is dark");
await picture(phone, "phone-dark");

// Every text stands out from its ground by 4.5 to 1 or more, in light and dark (WCAG 2.2, 1.4.3).
for (const colorScheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme });
  const faint = await page.evaluate(() => {
    const channels = (color) => color.match(/[\d.]+/g).map(Number);
    const luminance = ([red, green, blue]) => {
      const linear = [red, green, blue].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
      if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) || !element.checkVisibility()) continue;
      if (["SCRIPT", "title"].includes(element.tagName)) continue;
      let back = element;
      while (back && (channels(getComputedStyle(back).backgroundColor)[3] ?? 1) === 0) back = back.parentElement;
      const style = getComputedStyle(element);
      const front = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
      const [light, dark] = [front, getComputedStyle(back ?? document.body).backgroundColor].map((color) => luminance(channels(color))).sort((a, b) => b - a);
      const contrast = (light + 0.05) / (dark + 0.05);
      if (contrast < 4.5) found.push(`${element.tagName} “${element.textContent.trim()}” ${contrast.toFixed(2)}`);
    }
    return found;
  });
  assert.deepEqual(faint, [], `too faint in ${colorScheme}`);
}
await picture(page, "dark");

// Without JavaScript there is the summary.
const plain = await visit(held.page, { width: 1280, height: 900 }, "light", false);
assert.match(await text(plain, "pre"), new RegExp(`Success +${STREAMS} of ${STREAMS} streams opened`));

// An engine that is not there: the page says why the run is invalid, and draws no empty axes.
const gone = await load("gone", server.url, "--streams", "5", "--hold", "10s");
assert.equal(gone.code, 4);
const invalid = await visit(gone.page, { width: 1280, height: 900 }, "light");
assert.equal(await text(invalid, "#valid"), "invalid run");
assert.match(await text(invalid, "#reasons"), /5 of 5 streams did not open: 5 connect_refused/);
assert.match(await text(invalid, "#failed"), /connect_refused\s+5 \(100 %\)/);
assert.match(await text(invalid, "#silence"), /No stream was open/);
await picture(invalid, "invalid");

assert.deepEqual(complaints, [], "nothing went wrong in the pages");
assert.deepEqual(elsewhere, [], "nothing was asked of anyone");
await browser.close();
console.log("report: the run's numbers, offline, phone, contrast, invalid run: all as they should be");
process.exit(0);
