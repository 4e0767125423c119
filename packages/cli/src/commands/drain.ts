import type { CandidateInfo, Snapshot } from 'incumbent';
import { ElectionError } from 'incumbent';
import { administer } from '../administer.ts';
import type { Question } from '../ask.ts';
import type { Context } from '../context.ts';
import { listed } from '../elections.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { DrainOptions } from '../options.ts';
import { isLedOnce } from '../output/describe.ts';
import { span } from '../output/span.ts';
import { nearest } from '../terminal/nearest.ts';
import { isoTime, localTime } from '../terminal/time.ts';
import { parseUntil } from '../until.ts';

export async function drain(options: DrainOptions, context: Context): Promise<number> {
  if (options.lift) return lift(options, context);
  const { id, until, election: name, force } = options;
  const nowUnixMs = Date.now();
  if (until === undefined) {
    throw new UsageError('drain needs --until, such as --until 2h, or --lift');
  }
  const untilUnixMs = parseUntil(until, nowUnixMs);
  let unchecked = '';
  return administer(options, context, {
    allSeats: true,
    request: ({ election, signal }) => election.drain(id, new Date(untilUnixMs), { signal }),
    words({ changed, view }) {
      const when = `until ${localTime(untilUnixMs)} (${span(untilUnixMs - nowUnixMs)})`;
      const goes = view.leader?.id === id ? '; it leads, and was asked to go' : '';
      return changed
        ? `"${id}" is kept out of election "${name}" ${when}${goes}${unchecked}`
        : `"${id}" was kept out of election "${name}" ${when} already`;
    },
    details: { request: 'drain', id, until: isoTime(untilUnixMs) },
    async check(snapshot, question) {
      const waiting = await waitingIn(question);
      const known = new Set([...(waiting ?? []).map((each) => each.id), ...idsIn(snapshot)]);
      if (known.has(id)) return;
      if (waiting !== undefined) throw await unknownCandidate(options, known, snapshot, question);
      const { kind } = question.store.backend;
      unchecked = `; whether there is such a candidate is not known: the ${kind} store lists none`;
      await question.noteNeverLed(snapshot.view);
    },
    makes: force === true,
  });
}

function lift(options: DrainOptions, context: Context): Promise<number> {
  const { id, election: name } = options;
  let instead = '';
  return administer(options, context, {
    allSeats: true,
    request: ({ election, signal }) => election.drain(id, new Date(0), { signal }),
    words: ({ changed }) =>
      changed
        ? `"${id}" takes part in election "${name}" again`
        : `"${id}" was not kept out of election "${name}"${instead}`,
    details: { request: 'drain', id, until: null },
    async check({ drains, view }, { noteNeverLed }) {
      const drained = drains.map((each) => each.id);
      if (drained.length > 0) instead = `; kept out: ${listed(drained)}`;
      else await noteNeverLed(view);
    },
  });
}

/** Undefined: the store cannot list them. */
export async function waitingIn({
  election,
  signal,
}: Pick<Question, 'election' | 'signal'>): Promise<readonly CandidateInfo[] | undefined> {
  try {
    return await election.candidates({ signal });
  } catch (error) {
    if (error instanceof ElectionError && error.code === 'MISUSE') return undefined;
    throw error;
  }
}

/** Of candidates that need not run now. */
function idsIn({ view, history, drains }: Snapshot): readonly string[] {
  const ids = [...history, ...drains].map(({ id }) => id);
  return view.leader === undefined ? ids : [...ids, view.leader.id];
}

async function unknownCandidate(
  { id, election: name }: DrainOptions,
  known: ReadonlySet<string>,
  { view }: Snapshot,
  { meantInstead }: Question,
): Promise<CommandError> {
  const meant = nearest(id, known);
  const instead =
    meant !== undefined
      ? `; did you mean "${meant}"?`
      : known.size > 0
        ? `; known: ${listed([...known])}`
        : '';
  const others = isLedOnce(view)
    ? ''
    : `; this store has no record of a leader of this election${await meantInstead()}`;
  return new CommandError(
    'UNKNOWN_CANDIDATE',
    exitCodes.no,
    `no candidate "${id}" waits in election "${name}" or has led it lately${instead}${others} ` +
      '(`--force` keeps it out all the same)',
  );
}
