/** One program in one term: from the gate to the empty process group. */
import type { FenceHook, Term } from 'incumbent';
import { ElectionError } from 'incumbent';
import type { GuardedProgram, ProgramExit, ProgramSpec } from '../guard/index.ts';
import { GuardError } from '../guard/index.ts';
import { monotonicMs } from '../guard/protocol.ts';
import type { EventLog } from './events.ts';
import { describe } from './events.ts';
import type { GuardKeeper } from './guard-keeper.ts';
import type { ReadinessWatch } from './readiness.ts';

export interface Supervision {
  readonly guard: Pick<GuardKeeper, 'get'>;
  readonly events: Pick<EventLog, 'emit'>;
  /** The program that runs now: signals go to it. */
  running: GuardedProgram | undefined;
  /** The user asked for an end. */
  readonly interrupted: () => boolean;
  readonly stopTimeoutMs: number;
  /** The election has several seats. */
  readonly hasSeats: boolean;
}

/** The part of a term that a program needs. */
export type ProgramTerm = Pick<Term<unknown>, 'token' | 'signal' | 'resign' | 'declareActors'>;

/**
 * Runs `spec` while `term` lasts. Settles only when the whole process group is gone, because the
 * seat waits for that.
 * @param readiness asks whether the program is ready while it runs
 * @returns how the program ended, or undefined when the term ended it (or before it began)
 * @throws GuardError CANNOT_START; the term's end
 */
export async function runInTerm(
  term: ProgramTerm,
  spec: ProgramSpec,
  run: Supervision,
  readiness?: ReadinessWatch,
): Promise<ProgramExit | undefined> {
  const guard = await run.guard.get();
  let program: GuardedProgram;
  try {
    program = await guard.prepare(spec, term.signal);
  } catch (error) {
    return giveWay(term, error, run);
  }
  const stop = () => program.stop(monotonicMs() + run.stopTimeoutMs);
  term.signal.addEventListener('abort', stop, { once: true });
  try {
    // Behind its gate the program can do nothing. Only when the record names all who act for this
    // term may it begin: a successor must never take us for dead while it lives.
    await term.declareActors([
      { pid: process.pid },
      { pid: guard.pid },
      { pid: program.pid, group: program.pid, session: program.pid },
    ]);
    if (run.interrupted()) throw new GuardError('ENDED', 'interrupted');
    await program.go();
  } catch (error) {
    program.stop(0);
    await program.gone;
    return giveWay(term, error, run);
  }
  run.running = program;
  try {
    run.events.emit({
      event: 'started',
      sentence: `started ${spec.program} (pid ${program.pid})`,
      fields: { token: term.token, pid: program.pid },
    });
    readiness?.begin();
    const exit = await program.exited;
    // A check that succeeds from now on was answered by something else.
    readiness?.stop();
    await program.gone;
    run.events.emit({
      event: 'exited',
      sentence: `the program ended (${describeExit(exit)})`,
      fields: { token: term.token, ...exit },
    });
    if (exit.because === 'guard-lost') {
      run.events.emit({
        event: 'guard-lost',
        sentence: 'the guard was lost: the program was killed, leadership is given up',
        fields: { token: term.token },
      });
      term.resign();
    }
    return exit.because === 'itself' || run.interrupted() ? exit : undefined;
  } catch (error) {
    // Even after an error the seat waits for the program.
    program.stop(0);
    await program.gone;
    throw error;
  } finally {
    run.running = undefined;
    term.signal.removeEventListener('abort', stop);
  }
}

/**
 * Decides about an error that kept the program from starting: it is ours to report, or only the end
 * of the term.
 */
function giveWay(term: ProgramTerm, error: unknown, run: Supervision): undefined {
  const isOurs =
    error instanceof ElectionError ||
    error === term.signal.reason ||
    (error instanceof GuardError && (error.code === 'CANNOT_START' || error.code === 'MISUSE'));
  // Anything else came in between: the belief, the guard, or a stall of our own that made a wait for
  // the guard run out.
  if (!isOurs) {
    if (!run.interrupted()) {
      run.events.emit({
        event: 'not-started',
        sentence: `the program was not started: ${describe(error)}`,
        fields: { token: term.token },
      });
    }
    term.resign();
    return undefined;
  }
  throw error;
}

/** A shell command as a fence hook, run by the guard: it cannot outlive our belief. */
export function fenceHook(
  command: string,
  env: Readonly<Record<string, string>>,
  cwd: string,
  run: Supervision,
): FenceHook {
  return (predecessor, { token, seat, signal }) => {
    const variables = {
      ...env,
      ...(run.hasSeats && { INCUMBENT_SEAT: String(seat) }),
      INCUMBENT_PREDECESSOR_ADDRESSES: predecessor.addresses.join(' '),
    };
    const { guard, events } = run;
    return fence(command, { env: variables, cwd }, { guard, events, signal, token, predecessor });
  };
}

export interface Fencing extends Pick<Supervision, 'guard' | 'events'> {
  readonly signal: AbortSignal;
  readonly token: bigint;
  readonly predecessor: { readonly id: string; readonly token: bigint };
}

/** @throws when the command does not end with 0 */
export async function fence(
  command: string,
  { env, cwd }: Pick<ProgramSpec, 'env' | 'cwd'>,
  { guard, events, signal, token, predecessor: { id, token: theirs } }: Fencing,
): Promise<void> {
  const spec = {
    ...{ program: '/bin/sh', args: ['-c', command], cwd },
    env: {
      ...env,
      INCUMBENT_TOKEN: token.toString(),
      INCUMBENT_PREDECESSOR: id,
      INCUMBENT_PREDECESSOR_TOKEN: theirs.toString(),
    },
  };
  const exit = await runGuarded(guard, spec, signal, () =>
    events.emit({
      event: 'fencing',
      sentence: `fencing ${id}: ${command}`,
      fields: { token, predecessor: id, command },
    }),
  );
  if (exit.code !== 0) throw new Error(`${command}: ${describeExit(exit)}`);
}

/**
 * Runs a command of ours to its end. The guard holds it, so it cannot outlive our belief.
 * @param signal kills it
 * @param onStart called when it runs
 * @throws GuardError when it could not be started
 */
export async function runGuarded(
  keeper: Pick<GuardKeeper, 'get'>,
  spec: ProgramSpec,
  signal: AbortSignal,
  onStart: () => void = () => {},
): Promise<ProgramExit> {
  const guard = await keeper.get();
  const program = await guard.prepare(spec, signal);
  const stop = () => program.stop(0);
  signal.addEventListener('abort', stop, { once: true });
  try {
    await program.go().catch((error: unknown) => {
      stop();
      throw error;
    });
    onStart();
    return await program.exited;
  } finally {
    await program.gone;
    signal.removeEventListener('abort', stop);
  }
}

export function describeExit({ code, signal, because }: ProgramExit): string {
  const how = signal ?? (code === null ? 'nobody saw how' : `exit code ${code}`);
  return because === 'itself' ? how : `${how}, ${because.replace('-', ' ')}`;
}
