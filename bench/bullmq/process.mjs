// Waiting tasks handled per second, from the start of a worker to the last completion that BullMQ reports.
import { args, completed, fill, report, require, worker } from './queue.mjs';

await fill(args.n);
let handled = 0;
const w = worker(async () => {
  handled++;
}, args.concurrency);
const all = completed(w, args.n);
await w.waitUntilReady();
const begin = performance.now();
w.run();
await all;
const seconds = (performance.now() - begin) / 1000;
if (handled !== args.n) throw new Error(`${args.n} tasks were handled by ${handled} calls`);
await require({});
await report({ value: args.n / seconds }, w);
