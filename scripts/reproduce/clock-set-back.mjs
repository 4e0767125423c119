// A host is suspended for 6 s, and everybody looks at the clocks once. Then the wall clock is set
// back by 6 s, as when the time is corrected after waking up. A leader with a belief of 12 s, the
// watchdog of its process and the guard of `incumbent run` must all remember the 6 s. By then
// neither clock shows them. To a process the end of a suspension is a wall clock that has jumped
// ahead.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createElection, deadlineAfter } from 'incumbent';
import { SimulatedClock, SimulatedLeaseStore } from 'incumbent/testing';

const beliefMs = 12_000;
const suspendedMs = 6_000;
/**
 * A process that has forgotten the suspension goes on for 6 s more. Half of that is left to a slow
 * machine.
 */
const longestMs = beliefMs - suspendedMs / 2;
const root = fileURLToPath(new URL('../..', import.meta.url));

const directory = mkdtempSync(join(tmpdir(), 'clock-set-back-'));
const children = [];
let lives;
try {
  lives = [await believe(false), await believe(true), ...(await Promise.all([watch(), guard()]))];
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
for (const { who, ms } of lives)
  console.log(`${who}: over after ${Math.round(ms)} ms by its own clock`);
const forgetful = lives.filter(({ ms }) => !(ms < longestMs));
console.log(
  forgetful.length === 0
    ? 'ok: everybody remembered that the host was suspended'
    : `FAILED: forgotten by ${forgetful.map(({ who }) => who).join(', and by ')}`,
);
process.exit(forgetful.length === 0 ? 0 : 1);

/** @param wasAsking the leader's last confirmation is under way during all that */
async function believe(wasAsking) {
  const clock = new SimulatedClock();
  const store = new SimulatedLeaseStore({ clock });
  const { backend, ...connection } = open(store);
  const election = createElection({ name: 'jobs', backend, clock, lease: '15s' });
  const term = await election.campaign();
  if (wasAsking) {
    connection.next({ replyMs: 100 });
    await clock.advance(election.timing.renewEveryMs);
  }
  const fromMs = wasAsking ? clock.monotonicMs() : 0;
  clock.suspend(suspendedMs);
  term.isLeading();
  clock.stepWall(-suspendedMs);
  if (wasAsking) await clock.advance(100);
  const ms = clock.monotonicMs() - fromMs + term.remaining();
  return { who: wasAsking ? 'a leader that was asking' : 'a leader', ms };
}

function open(store) {
  const connection = store.connect();
  return { backend: connection.backend, next: (fault) => connection.next('swap', fault) };
}

/** A process whose work does not end and does not let it renew. */
async function watch() {
  const source = `
    import { createElection } from 'incumbent';
    import { memory } from 'incumbent/memory';
    const election = createElection({ name: 'jobs', backend: memory(), lease: '15s' });
    await election.lead(() => {
      process.send('leads');
      // The message leaves with the next turn of the event loop.
      setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000), 100);
      return new Promise(() => {});
    }, { watchdog: 'kill' });`;
  const wall = wallClock('watchdog');
  const args = ['-r', wall.preload, '--input-type=module', '-e', source];
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  children.push(child);
  await new Promise((resolve) => child.once('message', resolve));
  return { who: 'the watchdog', ms: await timeToLive(child, wall) };
}

/** The guard as `incumbent run` starts it, with a program. */
async function guard() {
  const wall = wallClock('guard');
  const file = join(root, 'packages/cli/guard/guard.cjs');
  const child = spawn(process.execPath, ['-r', wall.preload, file], {
    stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
  });
  children.push(child);
  const control = child.stdio[3];
  const says = (word) =>
    new Promise((resolve) => {
      const hear = (text) => {
        if (!String(text).includes(`"say":"${word}"`)) return;
        control.off('data', hear);
        resolve();
      };
      control.on('data', hear);
    });
  const tell = (message) => control.write(`${JSON.stringify(message)}\n`);
  await says('up');
  tell({ do: 'margins', stopMarginMs: 2_000, killMarginMs: 500 });
  tell({ do: 'belief', deadline: deadlineAfter(now(), beliefMs) });
  const prepared = says('prepared');
  // A gate that says that it stands, waits, and becomes a program that only KILL ends.
  const gate = `trap '' TERM; echo >&3; read -r go <&3; exec sleep 60`;
  tell({ do: 'prepare', id: 1, argv: ['/bin/sh', '-c', gate], env: {}, cwd: '/' });
  await prepared;
  tell({ do: 'go', id: 1 });
  const ms = await timeToLive(says('exited'), wall);
  return { who: 'the guard', ms };
}

/** From now on, while the host is suspended, somebody looks, and the clock is set back. */
async function timeToLive(child, wall) {
  const startMs = performance.now();
  const ended = child instanceof Promise ? child : new Promise((done) => child.once('exit', done));
  wall.stepTo(suspendedMs);
  await Promise.race([ended, wall.seen(suspendedMs)]);
  wall.stepTo(-1);
  await ended;
  return performance.now() - startMs;
}

/** A module to be loaded first, which lets us set `Date.now` and see that it was looked at. */
function wallClock(name) {
  const [preload, offset, looks] = ['clock.cjs', 'offset', 'looks'].map((file) =>
    join(directory, `${name}-${file}`),
  );
  const stepTo = (ms) => writeFileSync(offset, String(ms));
  stepTo(0);
  const source = `
    const { appendFileSync, readFileSync } = require('node:fs');
    const now = Date.now;
    Date.now = () => {
      const offset = readFileSync(${JSON.stringify(offset)}, 'utf8');
      appendFileSync(${JSON.stringify(looks)}, offset + '\\n');
      return now() + Number(offset);
    };`;
  writeFileSync(preload, source);
  writeFileSync(looks, '');
  const seen = async (ms) => {
    while (readFileSync(looks, 'utf8').split(`${ms}\n`).length < 3) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  return { preload, stepTo, seen };
}

function now() {
  const [seconds, nanoseconds] = process.hrtime();
  return { monotonicMs: seconds * 1e3 + nanoseconds / 1e6, wallMs: Date.now() };
}
