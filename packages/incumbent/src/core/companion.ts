import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { MisuseError } from '../base/errors.ts';
import { textOf } from '../base/thrown.ts';
import type { TimingOptions } from '../base/timing.ts';
import type { BackendMaker } from './contest.ts';
import type { SeatIdentity } from './seat-identity.ts';

/** A bundle of a service does not have it. */
export const companionFile: string = fileURLToPath(
  new URL('../../companion/companion.cjs', import.meta.url),
);
const heirFile = fileURLToPath(new URL('../../companion/heir.mjs', import.meta.url));

/** An election, as the heir has to know it. The seat comes beside it. */
export interface Estate {
  readonly election: string;
  readonly timing: TimingOptions;
  readonly store: BackendMaker;
}

type OnSeat = (seat: SeatIdentity | undefined) => void;

/** So much may wait for a companion that is frozen. Then we do without it. */
const mostWaitingBytes = 4_000_000;

/** The campaigns of this thread whose seats the companion knows. */
const entrusted = new Set<Entrusted>();
/** To the companion of this thread. Undefined: there is none, so a crash costs the lease. */
let pipe: Writable | undefined;
let keys = 0;

/**
 * A campaign whose seat is given back when this process has died. One process beside ours, the
 * companion, sees that death for all campaigns of a thread. Nothing but time depends on it.
 *
 * It is told each write before that is sent, so it knows every nonce that the record may have.
 */
export class Entrusted {
  readonly #estate: Estate;
  readonly #key: number = ++keys;
  readonly #next: OnSeat | undefined;
  readonly onTrouble: (error: Error) => void;
  /** The last message that was told. Undefined: there is no seat. */
  line: string | undefined;

  /** Starts the companion if none runs. */
  constructor(estate: Estate, next: OnSeat | undefined, onTrouble: (error: Error) => void) {
    // Each heir would lead, and leave an heir behind.
    if (process.argv[1] === heirFile) {
      throw new MisuseError(
        'this process gives back the seat of a dead one, and takes none: the module of releaseOnCrash may ' +
          'only make the store',
      );
    }
    this.#estate = estate;
    this.#next = next;
    this.onTrouble = onTrouble;
    entrusted.add(this);
    pipe ??= start();
  }

  readonly onSeat = (seat: SeatIdentity | undefined): void => {
    const bequest = seat === undefined ? null : { ...this.#estate, seat };
    const line = `${JSON.stringify({ key: this.#key, bequest })}\n`;
    this.line = seat === undefined ? undefined : line;
    pipe?.write(line);
    if ((pipe?.writableLength ?? 0) > mostWaitingBytes) lose(pipe, 'the companion reads nothing');
    this.#next?.(seat);
  };

  close(): void {
    entrusted.delete(this);
  }
}

function start(): Writable | undefined {
  // Only there we know that a child has another parent as soon as we are dead, and not before.
  if (process.platform !== 'linux') return undefined;
  const env = Object.entries(process.env);
  const isForNode = ([name]: [string, unknown]) => name.startsWith('NODE_');
  const heir = { execArgv: loaders(), env: Object.fromEntries(env.filter(isForNode)) };
  try {
    // Not imported: it takes 3 ms of every start.
    const { spawn } = process.getBuiltinModule('node:child_process');
    const child = spawn(process.execPath, [companionFile, String(process.pid)], {
      // A session of its own: a terminal's Ctrl-C is for us.
      detached: true,
      // Others may read our output to its end.
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      // NODE_OPTIONS and the like are for the user's modules.
      env: Object.fromEntries(env.filter((each) => !isForNode(each))),
    });
    // Without descriptors left there is none.
    const made = child.stdio?.[3] as (Writable & { unref(): void }) | undefined;
    child.on('error', ({ message }) => lose(made, `the companion cannot be started: ${message}`));
    child.on('exit', (code, signal) => lose(made, `the companion ended with ${signal ?? code}`));
    child.unref();
    made?.unref();
    made?.on('error', () => {});
    made?.write(`${JSON.stringify({ heir })}\n`);
    for (const { line } of entrusted) if (line !== undefined) made?.write(line);
    return made;
  } catch (error) {
    lose(undefined, `the companion cannot be started: ${textOf(error)}`);
    return undefined;
  }
}

function lose(lost: Writable | undefined, why: string): void {
  if (pipe !== lost) return;
  pipe = undefined;
  lost?.destroy();
  const error = new Error(
    `${why}: after a crash the lease runs out, until a new campaign starts another one`,
  );
  for (const { onTrouble } of entrusted) onTrouble(error);
}

/** As `fork` does, for the user's modules may need a loader. But nobody debugs the heir. */
function loaders(): string[] {
  const evaluated = process.execArgv.findIndex((arg) => /^(-\w*[ep]|--eval|--print)$/.test(arg));
  return process.execArgv.filter(
    (arg, at) =>
      !/^--(inspect|input-type)/.test(arg) &&
      (evaluated < 0 || at < evaluated || at > evaluated + 1),
  );
}
