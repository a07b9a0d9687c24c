// What the scripts share: their arguments, their connections, and queues of tasks that all contestants have.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Queue, Worker } from 'bullmq';
import IORedis from 'ioredis';

// args are what the bench asks for: redis, a URL; n tasks; payload, a JSON document; and more by the script.
export const args = JSON.parse(process.argv[2]);

// redis is a connection with the retries that BullMQ requires for workers.
const redis = new IORedis(args.redis, { maxRetriesPerRequest: null });

export const queue = new Queue('bench', { connection: redis });

// data of a task: a JSON document of the same size for all contestants. With an instant it begins with that, in
// microseconds.
export function data(instant) {
  const d = JSON.parse(args.payload);
  if (instant !== undefined) {
    const digits = String(Math.round(instant * 1000)).padStart(19, '0');
    d.data = digits + d.data.slice(digits.length);
  }
  return d;
}

// instantOf is the instant in a task's data.
export const instantOf = (d) => Number(d.data.slice(0, 19)) / 1000;

// now is the time in milliseconds since 1970 with more digits than Date.now has.
export const now = () => performance.timeOrigin + performance.now();

// job is a task as BullMQ takes it. Nothing of it stays when it is done, as for the other contestants.
export const job = (d, opts = {}) => ({ name: 'noop', data: d, opts: { removeOnComplete: true, ...opts } });

// fill stores n tasks with addBulk, with some calls under way at a time.
export async function fill(n, { batch = 1000, calls = 1, make = () => job(data()) } = {}) {
  let next = 0;
  await Promise.all(
    Array.from({ length: calls }, async () => {
      while (next < n) {
        const from = next;
        next = Math.min(n, from + batch);
        await queue.addBulk(Array.from({ length: next - from }, (_, i) => make(from + i)));
      }
    }),
  );
}

// worker handles the tasks of the queue, but does not start yet. Options but concurrency are the defaults.
export function worker(handle, concurrency) {
  return new Worker('bench', handle, { connection: redis, concurrency, autorun: false });
}

// completed resolves when BullMQ has reported n tasks of the worker as completed, and rejects when one fails.
export function completed(w, n) {
  return new Promise((resolve, reject) => {
    let done = 0;
    w.on('completed', () => {
      if (++done === n) resolve();
    });
    w.on('failed', (_, err) => reject(err));
    w.on('error', reject);
  });
}

// require ends the script with an error unless the queue holds so many tasks in each state, and none in the others.
export async function require(want) {
  const counts = await queue.getJobCounts();
  for (const [state, count] of Object.entries(counts)) {
    if (count !== (want[state] ?? 0)) throw new Error(`the queue holds ${JSON.stringify(counts)}`);
  }
}

// versions of what runs here, for the bench's report.
function versions() {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url)));
  return `BullMQ ${dependencies.bullmq}, Node.js ${process.version}`;
}

// report hands the figures to the bench, and ends all connections.
export async function report(figures, w) {
  await w?.close();
  await queue.close();
  if (redis.status !== 'end') {
    redis.disconnect();
    await once(redis, 'end');
  }
  console.log(JSON.stringify({ ...figures, versions: versions() }));
}
