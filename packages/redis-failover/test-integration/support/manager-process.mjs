// A manager in a process of its own, which can stop itself in the middle of a move:
//
//     node manager-process.mjs <JSON of {options, stopAt?, by?, reach?, broken?}>
//
// It writes its events as lines of JSON. At the step `stopAt`, such as `after promote`, it writes a
// line and sends itself the signal `by`: SIGSTOP or SIGKILL. SIGTERM ends it as an operator would.
import { writeSync } from 'node:fs';

const { NodeManager } = await import('../../dist/manager/node-manager.js');

const { options, stopAt, by, reach = {}, broken = [] } = JSON.parse(process.argv[2]);

function tell(event) {
  const [seconds, nanoseconds] = process.hrtime();
  const atMs = seconds * 1e3 + nanoseconds / 1e6;
  const text = JSON.stringify({ atMs, ...event }, (_key, value) => {
    if (typeof value === 'bigint') return String(value);
    if (!(value instanceof Error)) return value;
    return { name: value.name, message: value.message, code: value.code };
  });
  // Written synchronously, because the process may stop right after it.
  writeSync(1, `${text}\n`);
}

let stopped = false;
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());

const manager = new NodeManager(
  { ...options, onEvent: tell },
  {
    broken,
    reach: (address) => reach[address] ?? address,
    onStep(step) {
      tell({ type: 'at', step });
      if (step !== stopAt || stopped) return;
      stopped = true;
      tell({ type: 'stopping', by });
      process.kill(process.pid, by);
      tell({ type: 'going on' });
    },
  },
);
await manager.run(stop.signal);
