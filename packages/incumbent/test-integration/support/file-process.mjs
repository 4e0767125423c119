// A process of the file store's integration tests:
//
//     node file-process.mjs <compiled store.js> <command> <directory> ...
//
// It prints its findings as one line of JSON.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [storePath, command, directory, ...rest] = process.argv.slice(2);
const { openFileLeaseStore } = await import(pathToFileURL(storePath).href);
const forever = new AbortController().signal;
const election = 'e';
const store = openFileLeaseStore(directory, election);

const record = (token, nonce = '') => ({
  election,
  token,
  nonce,
  leaseMs: 15_000,
  ended: false,
  holding: undefined,
  reservation: undefined,
  unfenced: [],
  drains: [],
  history: [],
});

/** One swap on the present version. */
async function swap(nonce) {
  const { record: found, version } = await store.read(forever);
  const token = (found?.token ?? 0n) + 1n;
  const { outcome } = await store.swap(version, record(token, nonce), forever);
  return outcome === 'ok' ? Number(token) : undefined;
}

/** The outcome of a call: its value, or its error. */
async function outcomeOf(call) {
  try {
    return { value: await call() };
  } catch ({ name, message, retryable }) {
    return { name, message, retryable };
  }
}

/** Nothing but whole records. */
const filesLeft = () =>
  readdirSync(join(directory, election)).filter((name) => !/^\d{16}$/.test(name));

const commands = {
  /** Wins as many numbers as asked, against any competition. */
  async contend(wins) {
    const won = [];
    let conflicts = 0;
    while (won.length < Number(wins)) {
      const number = await swap(String(process.pid));
      if (number === undefined) conflicts += 1;
      else won.push(number);
    }
    await store.close();
    return { won, conflicts };
  },

  /** `directory` is the root of a small file system that may be filled. */
  async fillDisk() {
    const before = await swap('before');
    const filler = join(directory, 'filler');
    let filled = 0;
    try {
      for (;;) {
        writeFileSync(filler, Buffer.alloc(4096), { flag: 'a' });
        filled += 4096;
      }
    } catch ({ code }) {
      if (code !== 'ENOSPC') throw new Error(code);
    }
    const full = await outcomeOf(() => swap('full'));
    const left = filesLeft();
    const read = Number((await store.read(forever)).record.token);
    rmSync(filler);
    return { before, filled, full, left, read, after: await swap('after') };
  },

  /** Reads and swaps where it may not write. */
  async readOnly() {
    const read = await outcomeOf(async () => Number((await store.read(forever)).record.token));
    return { read, swap: await outcomeOf(() => swap('x')), left: filesLeft() };
  },

  /** Where nothing can even be made. */
  async make() {
    const read = await outcomeOf(() => store.read(forever));
    return { read, exists: existsSync(join(directory, election)) };
  },

  async swap() {
    return { won: await swap('x') };
  },

  async describe() {
    const actor = await store.describe({ pid: process.pid });
    return { actor, gone: store.provesGone([actor]) };
  },

  async provesGone(actor) {
    return { gone: store.provesGone([JSON.parse(actor)]) };
  },

  /**
   * Runs in a pid namespace of its own, as root. It mounts /proc with the given options, and kills
   * the leader of a session in which another process lives on. Then it asks as another user whether
   * the session is gone.
   */
  async sessionBehind(mountOptions) {
    execFileSync('mount', ['-t', 'proc', '-o', mountOptions, 'proc', '/proc']);
    const script = 'sleep 1000 & echo $!; exec sleep 1000';
    const leader = spawn('sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 2] });
    const [line] = await once(createInterface({ input: leader.stdout }), 'line');
    const { pid } = leader;
    const actor = await openFileLeaseStore(directory, election).describe({ pid, session: pid });
    const ended = once(leader, 'exit');
    leader.kill('SIGKILL');
    await ended;
    const ask = (looks) => {
      const command = ['provesGoneEver', directory, JSON.stringify(actor), looks];
      const args = [process.argv[1], storePath, ...command];
      const user = { uid: 65_534, gid: 65_534, encoding: 'utf8' };
      return JSON.parse(execFileSync(process.execPath, args, user)).gone;
    };
    const whileItLives = ask('100');
    process.kill(Number(line), 'SIGKILL');
    // Where it can be proved, some look finds a moment without a fork.
    const afterwards = ask(mountOptions === 'rw' ? 'Infinity' : '100');
    return { hasSession: actor.session === pid, whileItLives, afterwards };
  },

  /**
   * True when one of so many looks finds it gone. Other programs on this machine may
   * disturb some looks.
   */
  async provesGoneEver(actor, looks) {
    let gone = false;
    for (let i = 0; i < Number(looks) && !gone; i += 1) {
      gone = store.provesGone([JSON.parse(actor)]);
      await new Promise(setImmediate);
    }
    return { gone };
  },

  /** Enlists a candidate and waits to be killed. */
  async enlist(id) {
    await store.enlist({ id, incarnation: `inc-${id}`, addresses: [], metadata: {} });
    setInterval(() => {}, 1e6);
    return { pid: process.pid };
  },
};

console.log(JSON.stringify(await commands[command](...rest)));
