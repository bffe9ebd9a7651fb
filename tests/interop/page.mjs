// What the page of browser.py runs: its jobs, a few at once, each result posted as soon as it is there.

// Above what a browser opens to one address, so that no address waits for another.
const AT_ONCE = 24;

const drivers = {
  eventSource({ base, model }, push) {
    return new Promise((resolve) => {
      const source = new EventSource(`${base}/events/${model}`);
      const told = (event) => push([event.type, event.data, event.lastEventId]);
      source.onmessage = told;
      for (const type of ["greeting", "heartbeat", "ping"]) source.addEventListener(type, told);
      // The stream's end: it would open it again.
      source.onerror = () => { source.close(); resolve(); };
    });
  },

  async fetchEventSource({ base, api, model }, push) {
    const { fetchEventSource } = await import("/library/index.js");
    const asked = { model, messages: [{ role: "user", content: "hello" }], stream: true };
    const init = api === "events" ? {} : {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(asked),
    };
    await fetchEventSource(api === "events" ? `${base}/events/${model}` : `${base}/v1/chat/completions`, {
      ...init, openWhenHidden: true, onmessage: push, onerror: (error) => { throw error; },
    });
  },
};

async function run(driver, job) {
  const objects = [];
  let error = null;
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("no end in time")), 60_000));
  try {
    await Promise.race([driver(job, (thing) => objects.push(thing)), late]);
  } catch (problem) {
    error = `${problem.name}: ${problem.message}`;
  }
  await fetch("/", { method: "POST", body: JSON.stringify({ id: job.id, objects, error }) });
}

const { client, jobs } = await (await fetch("/jobs")).json();
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
  for (let job = jobs.shift(); job; job = jobs.shift()) await run(drivers[client], job);
}));
