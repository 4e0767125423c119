/** The findings of a run, for people and for programs. */
import { readFileSync } from 'node:fs';
import type { Group } from './groups.ts';
import type { Fate, Judgements, Stale } from './survivors.ts';

export interface Findings {
  readonly fates: readonly (Fate & { readonly group: Group })[];
  readonly judgements: Judgements;
  readonly stale: readonly Stale[];
}

interface Sums {
  readonly name: string;
  readonly mutants: number;
  readonly byTests: number;
  readonly bySeeds: number;
  readonly byIntegration: number;
  readonly timeouts: number;
  readonly equivalent: number;
  readonly accepted: number;
  readonly unjudged: number;
  /** Of those that are not equivalent, in percent. */
  readonly killed: number;
}

export function unjudged({ fates, judgements }: Findings): readonly Fate[] {
  return fates.filter(({ kind, mutant }) => kind === 'survived' && !judgements.has(mutant.id));
}

export function table(findings: Findings): string {
  const names = [...new Set(findings.fates.map(({ group }) => group))];
  const rows = [
    ...names.map((name) => sums(name, findings, (group) => group === name)),
    ...(names.length > 1 ? [sums('all', findings, () => true)] : []),
  ];
  const lines = [
    [
      ...['group', 'mutants', 'tests', 'seeds', 'integration', 'timeout'],
      ...['equivalent', 'accepted', 'new', 'killed'],
    ],
    ...rows.map((row) => [
      row.name,
      ...[row.mutants, row.byTests, row.bySeeds, row.byIntegration, row.timeouts].map(String),
      ...[row.equivalent, row.accepted, row.unjudged].map(String),
      `${row.killed.toFixed(1)} %`,
    ]),
  ];
  const widths = lines[0]?.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths?.[column] ?? 0) : cell.padStart(widths?.[column] ?? 0);
  return lines.map((line) => line.map(pad).join('  ')).join('\n');
}

function sums(name: string, findings: Findings, isIn: (group: Group) => boolean): Sums {
  const fates = findings.fates.filter(({ group }) => isIn(group));
  const count = (test: (fate: Fate) => boolean) => fates.filter(test).length;
  const failedBy = (judge: string) =>
    count(({ kind, by }) => kind === 'failed' && judgeOf(by) === judge);
  const judged = (kind: string | undefined) =>
    count(
      (fate) => fate.kind === 'survived' && findings.judgements.get(fate.mutant.id)?.kind === kind,
    );
  const equivalent = judged('equivalent');
  const byKill = count(({ kind }) => kind !== 'survived');
  const different = fates.length - equivalent;
  return {
    name,
    mutants: fates.length,
    byTests: failedBy('unit'),
    bySeeds: failedBy('seeds'),
    byIntegration: failedBy('integration'),
    timeouts: count(({ kind }) => kind === 'timeout'),
    equivalent,
    accepted: judged('accepted'),
    unjudged: judged(undefined),
    killed: different === 0 ? 100 : (100 * byKill) / different,
  };
}

function judgeOf(by: string | undefined): 'unit' | 'seeds' | 'integration' {
  if (by === 'seeds') return 'seeds';
  return by?.includes('/test-integration/') ? 'integration' : 'unit';
}

export function asJson(findings: Findings): string {
  const mutants = findings.fates.map(({ mutant, group, kind, by, why, isReached, ms }) => ({
    id: mutant.id,
    group,
    line: mutant.line,
    fate: kind,
    by,
    why,
    isReached,
    judgement: findings.judgements.get(mutant.id),
    ms: Math.round(ms),
  }));
  return `${JSON.stringify({ mutants, stale: findings.stale }, undefined, 1)}\n`;
}

/** @returns the ids of the survivors of an earlier run, whether or not they have a verdict */
export function survivorsIn(path: string): ReadonlySet<string> {
  const { mutants } = JSON.parse(readFileSync(path, 'utf8')) as {
    mutants: readonly { readonly id: string; readonly fate: Fate['kind'] }[];
  };
  return new Set(mutants.filter(({ fate }) => fate === 'survived').map(({ id }) => id));
}

/**
 * The mutants that an earlier run has killed, by their ids. The tests have not become fewer since.
 */
export function killedIn(path: string): ReadonlyMap<string, Omit<Fate, 'mutant'>> {
  const { mutants } = JSON.parse(readFileSync(path, 'utf8')) as {
    mutants: readonly (Omit<Fate, 'mutant' | 'kind'> & {
      readonly id: string;
      readonly fate: Fate['kind'];
    })[];
  };
  return new Map(
    mutants.flatMap(({ id, fate: kind, by, why, isReached, ms }) =>
      kind === 'survived' ? [] : [[id, { kind, by, why, isReached, ms }]],
    ),
  );
}

/** On stderr: a line that renews itself on a terminal, else one now and then. */
export function startProgress(describe: () => string): { stop: () => void } {
  const { isTTY, columns } = process.stderr;
  const timer = setInterval(
    () => {
      const line = describe();
      process.stderr.write(
        isTTY ? `\r${line.slice(0, columns - 1).padEnd(columns - 1)}` : `${line}\n`,
      );
    },
    isTTY ? 500 : 30_000,
  );
  return {
    stop() {
      clearInterval(timer);
      if (isTTY) process.stderr.write(`\r${' '.repeat(columns - 1)}\r`);
    },
  };
}

export function duration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return `${Math.round(ms / 1000)} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
