// A supervisor for the tests: the driver, and nothing that elects. It does what it is told over
// IPC, so that a test can kill or freeze it like any other process. Plain JavaScript on the built
// driver, because Node 20 runs no TypeScript.
import { execFileSync } from 'node:child_process';
import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { Guard } from '../dist/guard/index.js';

let guard;
let program;
let believing;

const monotonicMs = () => {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
};
const deadline = (monotonic, wall) => {
  const sentAt = { monotonicMs: monotonicMs(), wallMs: Date.now() };
  const ends = { monotonicMs: sentAt.monotonicMs + monotonic, wallMs: sentAt.wallMs + wall };
  return { ...ends, sentAt, lostMs: 0 };
};
const say = (event, details) => process.send?.({ event, ...details }, () => {});

const commands = {
  async start(options) {
    const onTrouble = ({ code, message }) => say('trouble', { code, message });
    guard = await Guard.start({ ...options, onTrouble });
    void guard.lost.then(({ code, message }) => say('lost', { code, message }));
    return { pid: guard.pid };
  },
  /** Once, for so many ms on the two clocks. */
  believe({ ms, wallMs = ms }) {
    const until = deadline(ms, wallMs);
    guard.belief(until);
    return until;
  },
  /** Again and again, as renewals do. */
  keepBelieving({ ms, everyMs }) {
    clearInterval(believing);
    believing = setInterval(() => guard.belief(deadline(ms, ms)), everyMs);
    guard.belief(deadline(ms, ms));
  },
  async prepare({ program: name, args = [], env = {}, cwd = process.cwd(), abortAfterMs }) {
    const spec = { program: name, args, env: { PATH: process.env.PATH, ...env }, cwd };
    const signal = abortAfterMs === undefined ? undefined : AbortSignal.timeout(abortAfterMs);
    signal?.addEventListener('abort', () => say('aborting'));
    program = await guard.prepare(spec, signal);
    const { pid } = program;
    void program.exited.then((exit) => say('exited', { pid, ...exit }));
    void program.gone.then(() => say('gone', { pid, left: living(pid) }));
    return { pid };
  },
  go: () => program.go(),
  stop: ({ graceMs }) => program.stop(monotonicMs() + graceMs),
  signal: ({ name }) => program.signal(name),
  seat: ({ seat }) => guard.seat(seat),
  /** Its ends of the pipes to the guard are closed, and it lives on. It would kill the guard else. */
  hangUp({ ms }) {
    for (const { _handle: handle } of process._getActiveHandles()) {
      if (handle?.fd > 2 && handle.constructor.name === 'Pipe') closeSync(handle.fd);
    }
    commands.block({ ms });
  },
  close: () => guard.close(),
  log: ({ text }) => console.error(text),
  /** A stall: nothing of ours runs. */
  block({ ms }) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  },
  exit: () => process.exit(0),
};

/** How many of a group, and of its session, can still act, at this very moment. */
function living(group) {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-A', '-o', 'pgid=,stat='], { encoding: 'utf8' }).split('\n');
    return lines.filter((line) => new RegExp(`^\\s*${group}\\s+[^Z]`).test(line)).length;
  }
  const stats = readdirSync('/proc').flatMap((pid) => {
    try {
      return [readFileSync(`/proc/${pid}/stat`, 'latin1')];
    } catch {
      return [];
    }
  });
  return stats.filter((stat) => new RegExp(`\\) [^Z] \\d+ (${group} |\\d+ ${group} )`).test(stat))
    .length;
}

async function answer({ id, command, options }) {
  try {
    const value = await commands[command](options ?? {});
    process.send?.({ id, value: value ?? null }, () => {});
  } catch (error) {
    const { name, code, exitCode, message } = error;
    process.send?.({ id, error: { name, code, exitCode, message } }, () => {});
  }
}

process.on('message', (message) => void answer(message));
// Our parent is gone, so we end too. A test that fails leaves no process behind.
process.on('disconnect', () => process.exit(1));
process.on('unhandledRejection', (error) => say('unhandled', { message: String(error) }));
