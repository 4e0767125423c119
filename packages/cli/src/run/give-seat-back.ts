/**
 * A process of its own: gives back the seat of a supervisor that is dead, as its program is. The
 * guard starts it (../guard/README.md) and then ends, so nothing waits for it. It bounds itself.
 */
// First, for the rest takes longer to be read.
import './left-alone.ts';
import { text } from 'node:stream/consumers';
import type { SeatIdentity } from 'incumbent/backend';
import { giveBackSeat } from 'incumbent/backend';
import { openStore } from '../open-store.ts';
import type { TimingFlags } from '../options.ts';
import { timingOf } from '../timing-flags.ts';
import { describe, EventLog } from './events.ts';

/** On its stdin: the URL of a store may hold a password, which an argument would show. */
export interface Bequest {
  readonly election: string;
  /** As `--store`. The rest of the store is in the environment, as it was for the supervisor. */
  readonly store: string | undefined;
  readonly timing: TimingFlags;
  readonly json: boolean;
  /** Process id of the supervisor. */
  readonly pid: number;
}

/** Later the seat runs out anyway, or another candidate has it. */
const withinMs = 5_000;
/** To close the connection, and to write the last line. */
const endWithinMs = 2_000;

void main().finally(() => process.exit());

async function main(): Promise<void> {
  const { seat, ...bequest } = JSON.parse(await text(process.stdin)) as Bequest & {
    readonly seat: SeatIdentity;
  };
  const { election, json, pid } = bequest;
  const events = new EventLog(
    { isTTY: false, write: () => {} },
    { eventsFd: 2, ...(json && { json }) },
    { election, candidate: seat.id },
  );
  setTimeout(() => process.exit(), withinMs + endWithinMs);
  const { token } = seat;
  const fields = { ...(seat.seat !== undefined && { seat: seat.seat }), token, pid };
  try {
    const isGivenBack = await giveBack(bequest, seat);
    if (isGivenBack === true) {
      events.emit({
        event: 'given-back',
        sentence: `the supervisor (pid ${pid}) and its program are dead: term ${token} was given back`,
        fields,
      });
    } else {
      events.emit({ event: 'not-given-back', fields });
    }
  } catch (error) {
    const reason = describe(error);
    events.emit({
      event: 'not-given-back',
      sentence: `the supervisor (pid ${pid}) is dead, and term ${token} could not be given back, so it runs out: ${reason}`,
      fields: { ...fields, error: reason },
    });
  }
  await events.close();
}

async function giveBack(
  { election, store: url, timing }: Bequest,
  seat: SeatIdentity,
): Promise<boolean | undefined> {
  const signal = AbortSignal.timeout(withinMs);
  const store = await openStore(
    url,
    { timeoutMs: withinMs, signal, lease: timing.lease, patient: true },
    { env: process.env, cwd: process.cwd(), platform: process.platform },
  );
  const { backend } = store;
  const options = { ...timingOf(timing, backend.limits), name: election, backend, seat, signal };
  // Our processes are dead. But a container that the program started, or a process of another machine, may
  // still work: so the next leader fences, as after any crash.
  const isGivenBack = await giveBackSeat({ ...options, hasWorkEnded: false });
  await store.close?.().catch(() => {});
  return isGivenBack;
}
