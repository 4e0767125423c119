import type { CandidateInfo, Snapshot } from 'incumbent';
import { look } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { ElectionQuestion } from '../options.ts';
import { metadataWords } from '../output/describe.ts';
import { painter } from '../terminal/style.ts';
import type { Cell } from '../terminal/table.ts';
import { table } from '../terminal/table.ts';
import { toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';

export async function candidates(options: ElectionQuestion, context: Context): Promise<number> {
  const [snapshot, found] = await look(options, context, async (question) => {
    const { election, signal } = question;
    const inspected = await election.inspect({ signal });
    const candidates = await election.candidates({ signal });
    if (candidates.length === 0) await question.noteNeverLed(inspected.view);
    return [inspected, candidates] as const;
  });
  const listed = found.map((candidate) => placeOf(candidate, snapshot));
  if (options.json) {
    for (const { candidate, role, drainedUntilUnixMs } of listed) {
      const drainedUntil = drainedUntilUnixMs === undefined ? null : isoTime(drainedUntilUnixMs);
      context.stdout.write(`${toJson({ role, ...candidate, drainedUntil })}\n`);
    }
    return exitCodes.ok;
  }
  if (listed.length === 0) {
    context.stderr.write('nobody leads, and nobody waits\n');
    return exitCodes.ok;
  }
  const rows = listed.map(({ candidate, role, drainedUntilUnixMs }): Cell[] => [
    drainedUntilUnixMs === undefined
      ? role === 'leading'
        ? { text: role, tone: 'good' }
        : { text: role }
      : { text: `${role}, drained until ${localTime(drainedUntilUnixMs)}`, tone: 'warn' },
    { text: visible(candidate.id) },
    { text: candidate.addresses.map(visible).join(' ') },
    { text: metadataWords(candidate).join(' ') },
  ]);
  const lines = table(
    [{ title: 'ROLE' }, { title: 'ID' }, { title: 'ADDRESSES' }, { title: 'METADATA' }],
    rows,
    painter(context.stdout, context.env),
    context.stdout.isTTY === true ? context.stdout.columns : undefined,
  );
  context.stdout.write(`${lines.join('\n')}\n`);
  return exitCodes.ok;
}

interface Place {
  readonly candidate: CandidateInfo;
  readonly role: 'leading' | 'waiting';
  readonly drainedUntilUnixMs: number | undefined;
}

function placeOf(candidate: CandidateInfo, { view, drains }: Snapshot): Place {
  const leads = view.state === 'led' && view.leader?.incarnation === candidate.incarnation;
  return {
    candidate,
    role: leads ? 'leading' : 'waiting',
    drainedUntilUnixMs: drains.find(({ id }) => id === candidate.id)?.untilUnixMs,
  };
}
