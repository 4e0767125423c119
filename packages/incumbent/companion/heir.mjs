// A process of its own: gives back the seats of a process that is dead. The companion starts it, and waits for nothing
// but its end. It bounds itself.
//
// On stdin: what a process that is dead has left, as src/core/companion.ts tells it.
import { text } from 'node:stream/consumers';

// A manager of services that sees the process die sends TERM to all that is left of it.
for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(name, () => {});
// A client of one store must not take the others with it. Nobody reads what we say.
process.on('uncaughtException', () => {});

// Later the seat runs out anyway, or another candidate has it.
const withinMs = 5_000;
const atOnce = 16;

setTimeout(() => process.exit(), withinMs);
const signal = AbortSignal.timeout(withinMs);
const [bequests, { giveBackSeat }] = await Promise.all([
  text(process.stdin).then(JSON.parse),
  import('../dist/backend.js'),
]);
const backends = new Map();
const waiting = bequests.values();
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    for (const bequest of waiting) await giveBack(bequest).catch(() => {});
  }),
);
process.exit();

async function giveBack({ election, timing, store, seat }) {
  const which = JSON.stringify(store);
  if (!backends.has(which)) backends.set(which, make(store));
  const options = { ...timing, name: election, backend: await backends.get(which), seat, signal };
  // The process is dead. But its children, or a process of another machine, may still work: so the next
  // leader fences, as after any crash.
  await giveBackSeat({ ...options, hasWorkEnded: false });
}

/** The export is a backend, or a function that makes one. */
async function make({ module, name, args }) {
  const { [name]: exported } = await import(module);
  return typeof exported === 'function' ? exported(...args) : exported;
}
