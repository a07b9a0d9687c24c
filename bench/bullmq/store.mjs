// Stores tasks, due or delayed by args.delay milliseconds, for the bench to look at the memory they take.
import { args, data, fill, job, report, require } from './queue.mjs';

await fill(args.n, { make: () => job(data(), args.delay ? { delay: args.delay } : {}) });
await require(args.delay ? { delayed: args.n } : { waiting: args.n });
await report({});
