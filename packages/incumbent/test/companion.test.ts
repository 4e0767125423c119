/**
 * The words between a process and its companion. That the companion sees a death, and gives seats
 * back, is tested with real processes.
 */
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import type { Estate } from '../src/core/companion.ts';
import { companionFile, Entrusted } from '../src/core/companion.ts';
import type { SeatIdentity } from '../src/core/seat-identity.ts';

const estate: Estate = {
  ...{ election: 'jobs', timing: { lease: '20s' } },
  store: { module: 'file:///store.js', name: 'default', args: [] },
};
const seat: SeatIdentity = { id: 'a', incarnation: 'i', token: '5', nonces: ['n'] };
const restores: (() => void)[] = [];

/** Our end of the pipe to a companion. */
class Pipe extends Writable {
  readonly lines: unknown[] = [];
  /** Nothing is read at the other end. */
  isStuck = false;
  isUnref = false;

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(chunk: string, _encoding: unknown, done: () => void): void {
    if (this.isStuck) return;
    this.lines.push(JSON.parse(chunk));
    done();
  }

  unref(): void {
    this.isUnref = true;
  }
}

class Child extends EventEmitter {
  readonly pipe = new Pipe();
  stdio: unknown[] = [null, null, null, this.pipe];
  isUnref = false;

  unref(): void {
    this.isUnref = true;
  }
}

type Spawned = readonly [file: string, args: readonly string[], options: Record<string, unknown>];

/** From here on companions are started as the test says. */
function starting(make: () => Child = () => new Child()) {
  const spawned: Spawned[] = [];
  const children: Child[] = [];
  let isSettingUp = true;
  const spawn = (...args: Spawned) => {
    spawned.push(args);
    const child = make();
    child.pipe.isStuck = isSettingUp;
    children.push(child);
    return child;
  };
  const spy = vi.spyOn(process, 'getBuiltinModule').mockReturnValue({ spawn } as never);
  // Another test may have left a companion. It does not read so much at once.
  const last = new Entrusted(estate, undefined, () => {});
  last.onSeat({ ...seat, nonces: ['x'.repeat(5_000_000)] });
  last.close();
  isSettingUp = false;
  spawned.length = 0;
  children.length = 0;
  restores.push(() => {
    for (const child of children) child.emit('exit', 0, null);
    spy.mockRestore();
  });
  return { spawned, children };
}

function campaign(next?: (told: SeatIdentity | undefined) => void) {
  const trouble: string[] = [];
  const entrusted = new Entrusted(estate, next, ({ message }) => trouble.push(message));
  restores.push(() => entrusted.close());
  return { entrusted, trouble };
}

afterEach(() => {
  for (const restore of restores.splice(0).reverse()) restore();
});

const ended = 'after a crash the lease runs out, until a new campaign starts another one';

test('a companion is started apart from this process, and keeps it from nothing', () => {
  vi.stubEnv('NODE_OPTIONS', '--enable-source-maps');
  vi.stubEnv('SOME_SETTING', 'x');
  restores.push(() => vi.unstubAllEnvs());
  const { spawned, children } = starting();
  campaign();
  const [[file, args, options]] = spawned as [Spawned];
  expect([file, ...args]).toEqual([process.execPath, companionFile, String(process.pid)]);
  const { env, ...rest } = options;
  expect(rest).toEqual({ detached: true, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  // Settings for the user's modules are for the heir, which loads them.
  expect(env).toMatchObject({ SOME_SETTING: 'x' });
  expect(Object.keys(env as object).filter((name) => name.startsWith('NODE_'))).toEqual([]);
  const [child] = children as [Child];
  expect([child.isUnref, child.pipe.isUnref]).toEqual([true, true]);
  const [first] = child.pipe.lines as [{ heir: { env: object; execArgv: string[] } }];
  expect(first.heir.env).toMatchObject({ NODE_OPTIONS: '--enable-source-maps' });
  expect(Object.keys(first.heir.env).every((name) => name.startsWith('NODE_'))).toBe(true);
  // A broken pipe is told by the end of the child.
  expect(() => child.pipe.emit('error', new Error('EPIPE'))).not.toThrow();
});

test.each([
  [
    ['--import', 'tsx', '--inspect=0', '--inspect-brk', '--input-type=module'],
    ['--import', 'tsx'],
  ],
  [
    ['--import', 'tsx', '-e', 'run()', '--conditions=x'],
    ['--import', 'tsx', '--conditions=x'],
  ],
  [['--eval', 'run()'], []],
  [['-pe', 'run()', '--no-warnings'], ['--no-warnings']],
  [['--no-warnings', '--print', 'x'], ['--no-warnings']],
])(
  'an heir has the loaders of this process, and is neither debugged nor evaluated: %j',
  (given, expected) => {
    const { execArgv } = process;
    process.execArgv = given;
    restores.push(() => {
      process.execArgv = execArgv;
    });
    const { children } = starting();
    campaign();
    expect(children[0]?.pipe.lines).toMatchObject([{ heir: { execArgv: expected } }]);
  },
);

test('one companion is told the seats of all campaigns, each under its own key', () => {
  const { spawned, children } = starting();
  const told: unknown[] = [];
  const { entrusted } = campaign((each) => told.push(each));
  const other = campaign().entrusted;
  entrusted.onSeat(seat);
  other.onSeat({ ...seat, id: 'b' });
  entrusted.onSeat(undefined);
  expect(spawned).toHaveLength(1);
  const lines = (children[0] as Child).pipe.lines.slice(1) as { key: number; bequest: unknown }[];
  expect(lines.map(({ bequest }) => bequest)).toEqual([
    { ...estate, seat },
    { ...estate, seat: { ...seat, id: 'b' } },
    null,
  ]);
  const [first, second, third] = lines.map(({ key }) => key);
  expect([first === second, first === third]).toEqual([false, true]);
  // The listener of the user hears of it as well.
  expect(told).toEqual([seat, undefined]);
});

test('a companion that ends is trouble for each campaign, once, and the next one is told all seats', () => {
  const { spawned, children } = starting();
  const [a, b, over] = [campaign(), campaign(), campaign()];
  over.entrusted.close();
  a.entrusted.onSeat(seat);
  b.entrusted.onSeat(seat);
  b.entrusted.onSeat(undefined);
  const [first] = children as [Child];
  first.emit('exit', null, 'SIGKILL');
  first.emit('exit', 1, null);
  expect(a.trouble).toEqual([`the companion ended with SIGKILL: ${ended}`]);
  expect(b.trouble).toEqual(a.trouble);
  expect(over.trouble).toEqual([]);
  expect(first.pipe.destroyed).toBe(true);
  const renewed = { ...seat, nonces: ['n', 'm'] };
  a.entrusted.onSeat(renewed);
  const c = campaign();
  expect(spawned).toHaveLength(2);
  const [, second] = children as [Child, Child];
  expect(second.pipe.lines.slice(1)).toMatchObject([{ bequest: { seat: renewed } }]);
  // The old one is no news any more.
  first.emit('error', new Error('late'));
  expect([a.trouble.length, c.trouble.length]).toEqual([1, 0]);
  second.emit('exit', 3, null);
  expect(c.trouble).toEqual([`the companion ended with 3: ${ended}`]);
});

test('a companion that cannot be started is told of, and the campaign goes on', () => {
  const late = starting();
  const a = campaign();
  late.children[0]?.emit('error', new Error('spawn ENOENT'));
  expect(a.trouble).toEqual([`the companion cannot be started: spawn ENOENT: ${ended}`]);
  a.entrusted.close();
  starting(() => {
    throw new Error('no memory');
  });
  const b = campaign();
  expect(b.trouble).toEqual([`the companion cannot be started: no memory: ${ended}`]);
  expect(() => b.entrusted.onSeat(seat)).not.toThrow();
});

test('without a descriptor for its pipe there is no companion', () => {
  const { spawned, children } = starting(() => Object.assign(new Child(), { stdio: undefined }));
  const a = campaign();
  expect(() => a.entrusted.onSeat(seat)).not.toThrow();
  children[0]?.emit('error', new Error('EMFILE'));
  expect(a.trouble).toEqual([`the companion cannot be started: EMFILE: ${ended}`]);
  campaign();
  expect(spawned).toHaveLength(2);
});

test('a companion that reads nothing costs 4 MB of memory, and no more', () => {
  const { children } = starting();
  const { entrusted, trouble } = campaign();
  const { pipe } = children[0] as Child;
  entrusted.onSeat({ ...seat, nonces: [''] });
  const bytes = JSON.stringify(pipe.lines.at(-1)).length + 1;
  pipe.isStuck = true;
  entrusted.onSeat({ ...seat, nonces: ['x'.repeat(4_000_000 - bytes)] });
  expect([pipe.writableLength, pipe.destroyed]).toEqual([4_000_000, false]);
  entrusted.onSeat(undefined);
  expect(pipe.destroyed).toBe(true);
  expect(trouble).toEqual([`the companion reads nothing: ${ended}`]);
});

test('there is none where a child does not see its parent die', () => {
  const { spawned } = starting();
  const { platform } = process;
  Object.defineProperty(process, 'platform', { value: 'darwin' });
  restores.push(() => Object.defineProperty(process, 'platform', { value: platform }));
  const { entrusted, trouble } = campaign();
  entrusted.onSeat(seat);
  expect([spawned, trouble]).toEqual([[], []]);
});
