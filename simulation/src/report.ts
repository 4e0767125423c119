import type { Coverage } from './coverage.ts';
import { guarantees } from './guarantees.ts';
import { queueGuarantees } from './queue/guarantees.ts';
import type { Mechanism } from './run-seed.ts';
import type { SeedResult } from './simulation.ts';

const lease: readonly string[] = [
  'terms',
  'releases',
  'takeovers',
  'takeovers at the edge of the lease',
  'takeovers by proof of death',
  'terms announced after fencing',
  'ghosts of one’s own taken over',
  'wins taken back before they landed',
  'effects of an older term refused',
  'work that overran its belief',
  'crashes',
  'restarts under the same name',
  'handles closed',
  'withdrawals',
  'conflicts',
  'unanswered writes found to have landed',
  'unanswered writes found not to have landed',
  'unanswered writes found overtaken',
  'stalls of a leader beyond its belief',
  'stalls in the middle of a turn',
  'suspensions of a leader beyond its belief',
  'wall clocks set back',
  'wall clocks set forward',
  'event loops blocked by work',
  'links cut',
  'operations with odd fates',
  'outages: silent',
  'outages: refuses',
  'outages: read-only',
  'operator: vacate',
  'operator: vacate by force',
  'operator: transfer',
  'operator: drain',
  'operator: end',
  'operator: reopen',
  'operators that ask at a win',
  'operators that ask at a release',
  'operators that ask too late',
  'restarts while a write of before is on its way',
  'writes of the dead that landed after their successor began',
  'withdrawals while a write is on its way',
  'reservations used',
  'proclamations',
  'children declared',
  'children and hooks that outlived their parent',
  'hooks run',
  'hooks that failed',
  'views seen by observers',
  'ended: resigned',
  'ended: withdrawn',
  'ended: work-finished',
  'ended: work-failed',
  'ended: renewal-failed',
  'ended: superseded',
  'ended: record-gone',
  'ended: vacated',
  'ended: handed-over',
  'ended: unhealthy',
  'ended: stalled',
  'ended: election-ended',
];

const queue: readonly string[] = [
  'terms',
  'releases',
  'terms after a clean end',
  'terms after an unclean end',
  'terms announced after fencing',
  'sessions expired while leading',
  'sessions expired while waiting',
  'sessions ended by hand',
  'places deleted by hand',
  'sessions that led several elections lost some places',
  'leaders after one that spells its place otherwise',
  'leaders that die as soon as they are announced',
  'requests of a moved session refused',
  'elections inside the ensemble',
  'servers cut off',
  'servers frozen',
  'servers crashed',
  'servers that lag',
  'links cut',
  'links to one server cut',
  'requests with odd fates',
  'members that are not ours',
  'effects of an older term refused',
  'work that overran its belief',
  'crashes',
  'restarts under the same name',
  'children that outlived their parent',
  'handles closed',
  'withdrawals',
  'stalls of a leader beyond its belief',
  'stalls in the middle of a turn',
  'suspensions of a leader beyond its belief',
  'wall clocks set back',
  'wall clocks set forward',
  'event loops blocked by work',
  'operator: vacate',
  'operator: vacate by force',
  'operator: transfer',
  'operator: drain',
  'operator: end',
  'operator: reopen',
  'operators refused',
  'operators that ask at a win',
  'operators that ask at a release',
  'operators that ask too late',
  'restarts while a write of before is on its way',
  'writes of the dead that landed after their successor began',
  'proclamations',
  'hooks run',
  'hooks that failed',
  'views seen by observers',
  'ended: resigned',
  'ended: withdrawn',
  'ended: work-finished',
  'ended: work-failed',
  'ended: renewal-failed',
  'ended: session-expired',
  'ended: disconnected',
  'ended: record-gone',
  'ended: vacated',
  'ended: handed-over',
  'ended: unhealthy',
  'ended: stalled',
  'ended: election-ended',
];

/**
 * What a thousand seeds must have contained. A schedule that did not occur was not tested: zero
 * means that the simulation has gone blind, and the run fails.
 */
export const required: Readonly<Record<Mechanism, readonly string[]>> = { lease, queue };

/** Every promise in one sentence, by its name. */
export const sentences: Readonly<Record<Mechanism, Readonly<Record<string, string>>>> = {
  lease: guarantees,
  queue: queueGuarantees,
};

export function coverageTable(mechanism: Mechanism, coverage: Coverage): string {
  const names = [...new Set([...required[mechanism], ...[...coverage.counts.keys()].sort()])];
  const cells = names.map(
    (name) => `${String(Math.round(coverage.get(name))).padStart(9)}  ${name}`,
  );
  const half = Math.ceil(cells.length / 2);
  const rows = cells
    .slice(0, half)
    .map((left, index) => `${left.padEnd(56)}${cells[half + index] ?? ''}`.trimEnd());
  return `what the seeds of the ${mechanism} contained:\n${rows.join('\n')}`;
}

export function missing(mechanism: Mechanism, coverage: Coverage): readonly string[] {
  return required[mechanism].filter((name) => coverage.get(name) === 0);
}

export function describeFailure(
  { mechanism, seed, violation, lines }: SeedResult,
  shown: number,
): string {
  const name = violation?.guarantee ?? '';
  const sentence = sentences[mechanism][name] ?? 'the same seed takes the same course';
  return [
    `${mechanism}, seed ${seed}: "${name}" is broken after ${((violation?.atMs ?? 0) / 1000).toFixed(3)} s: ${violation?.message}`,
    `  the guarantee: ${sentence}`,
    '  what came before:',
    ...lines.slice(-shown).map((line) => `  ${line}`),
    `  again: npm run simulate -- --mechanism ${mechanism} --from ${seed} --seeds 1 --trace`,
  ].join('\n');
}
