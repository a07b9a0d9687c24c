// Tasks stored per second: with addBulk, or one by one from as many callers as args.callers says.
import { args, data, fill, job, queue, report, require } from './queue.mjs';

async function oneByOne(n, callers) {
  let next = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (next++ < n) {
        const { name, data: d, opts } = job(data());
        await queue.add(name, d, opts);
      }
    }),
  );
}

await queue.waitUntilReady();
const begin = performance.now();
await (args.callers ? oneByOne(args.n, args.callers) : fill(args.n, { calls: args.calls, batch: args.batch }));
const seconds = (performance.now() - begin) / 1000;
await require({ waiting: args.n });
await report({ value: args.n / seconds });
