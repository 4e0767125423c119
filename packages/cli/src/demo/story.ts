import type { FencedLog } from '../trial/fenced-log.ts';
import type { TermActivity } from '../trial/judge.ts';
import { waitUntil } from '../trial/wait-until.ts';
import type { Fleet } from './fleet.ts';
import { inSeconds } from './picture.ts';
import type { Scene } from './scene.ts';
import type { Mark, Note } from './snapshot.ts';

export const candidateIds: readonly string[] = ['ada', 'bob', 'cyd', 'dan', 'eve'];

const staggerMs = 200;
/** How long one leads before something happens to it. */
const reignMs = 2_000;
/** How long it is watched after something happened. */
const watchMs = 1_000;
/** Far beyond any takeover, so that only a hang runs into it. */
const patienceMs = 60_000;

/** An event of the demo, for people and for programs. */
export interface Telling {
  readonly event: 'leads' | Mark | 'noticed';
  readonly candidate: string;
  readonly token: bigint;
  /** From what was done to the leader before it. */
  readonly takeoverMs?: number;
  readonly sentence: string;
}

export interface Stage {
  readonly scene: Scene;
  readonly fleet: Fleet;
  readonly log: FencedLog;
  readonly tell: (telling: Telling) => void;
  /** Asks the leader to go. */
  readonly vacate: () => Promise<unknown>;
}

/**
 * The leader is killed. The next leader is frozen until another one leads, and then thawed. That
 * one is asked to resign, one more leads, and the demo is over.
 * @throws when no candidate leads in time; `signal.reason`
 */
export async function play(stage: Stage, signal: AbortSignal): Promise<void> {
  const { scene, fleet, log, tell } = stage;
  const pause = (ms: number) => waitUntil(() => false, ms, signal);

  const leads = async (before: TermActivity | undefined): Promise<TermActivity> => {
    const term = await waitUntil(
      () => {
        const { newest } = log.judge;
        return newest !== before && newest;
      },
      patienceMs,
      signal,
    );
    if (term === undefined) {
      throw new Error(`nobody has led for ${inSeconds(patienceMs, 0)} after ${before?.candidate}`);
    }
    return term;
  };
  /** Does something to the leader and waits for the next one. */
  const strike = async (
    leader: TermActivity,
    mark: Mark,
    what: string,
    act: () => unknown,
  ): Promise<TermActivity> => {
    await pause(reignMs);
    const { candidate, token } = leader;
    scene.mark(candidate, mark);
    const note = scene.note({ mark, what: `${candidate} ${what}` });
    tell({ event: mark, candidate, token, sentence: note.what });
    const struckNs = process.hrtime.bigint();
    await act();
    const next = await leads(leader);
    succeed(note, next, Math.round(Number(next.firstNs - struckNs) / 1e6));
    return next;
  };
  const succeed = (note: Note, { candidate, token }: TermActivity, takeoverMs: number): void => {
    note.outcome = `${candidate} leads after ${inSeconds(takeoverMs, 2)}`;
    tell({ event: 'leads', candidate, token, takeoverMs, sentence: `→ ${note.outcome}` });
  };

  const startAll = async (): Promise<void> => {
    for (const id of candidateIds) {
      fleet.start(id);
      // One after the other, so that they do not all load their code at once.
      await pause(staggerMs);
    }
  };
  const firstLeads = async (): Promise<TermActivity> => {
    const first = await leads(undefined);
    const { candidate, token } = first;
    const { what } = scene.note({ what: `${candidate} leads` });
    tell({ event: 'leads', candidate, token, sentence: what });
    return first;
  };
  const [first] = await Promise.all([firstLeads(), startAll()]);

  const second = await strike(first, 'killed', 'killed (SIGKILL)', () => {
    fleet.kill(first.candidate);
    scene.is(first.candidate, 'gone');
  });

  const sleeper = second.candidate;
  const third = await strike(second, 'frozen', 'frozen (SIGSTOP)', () => {
    fleet.freeze(sleeper);
    scene.is(sleeper, 'frozen');
  });

  await pause(watchMs);
  scene.mark(sleeper, 'thawed');
  const note = scene.note({ mark: 'thawed', what: `${sleeper} thawed (SIGCONT)` });
  tell({ event: 'thawed', candidate: sleeper, token: second.token, sentence: note.what });
  fleet.thaw(sleeper);
  scene.is(sleeper, 'waits');
  if (!(await waitUntil(() => fleet.hasEnded(second.token), patienceMs, signal))) {
    throw new Error(`${sleeper} has not noticed that its term is over`);
  }
  note.outcome = 'it finds its term over, and waits';
  const noticed = { event: 'noticed', candidate: sleeper, token: second.token } as const;
  tell({ ...noticed, sentence: `→ ${note.outcome}` });

  await strike(third, 'resigned', 'asked to resign', stage.vacate);
  await pause(reignMs);
}
