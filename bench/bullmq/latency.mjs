// How long tasks wait for their start, in milliseconds: from the instant they should be sent at (args.at, fixed in
// advance) or, with args.scheduled, from the instant they are due at.
import { args, completed, data, fill, instantOf, job, now, queue, report, require, worker } from './queue.mjs';

// until waits for an instant: a timer is too coarse for the last two milliseconds, so they are spent in the event loop.
async function until(instant) {
  const left = instant - now() - 2;
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
  while (now() < instant) await new Promise(setImmediate);
}

// sendIdle sends each task at its instant, whether the one before is stored or not.
async function sendIdle() {
  const begin = now();
  const sent = [];
  for (const at of args.at) {
    await until(begin + at);
    const { name, data: d, opts } = job(data(begin + at));
    sent.push(queue.add(name, d, opts));
  }
  await Promise.all(sent);
}

// sendScheduled stores all tasks at once, each with a delay. BullMQ counts it in milliseconds, from a timestamp that
// it is given here, so that the due time is known.
async function sendScheduled() {
  const begin = Date.now();
  const make = (i) => {
    const due = Math.ceil(begin + args.lead + args.at[i]);
    const timestamp = Date.now();
    return job(data(due), { timestamp, delay: due - timestamp });
  };
  await fill(args.at.length, { make });
}

const waits = [];
let early = 0;
const w = worker(async ({ data: d }) => {
  const wait = now() - instantOf(d);
  if (wait < 0) early++;
  waits.push(wait);
}, args.concurrency);
const all = completed(w, args.at.length);
await w.waitUntilReady();
w.run();
await (args.scheduled ? sendScheduled() : sendIdle());
await all;
if (waits.length !== args.at.length) throw new Error(`${args.at.length} tasks were handled by ${waits.length} calls`);
await require({});
await report({ waits, early }, w);
