/**
 * The survivors that somebody has looked at, `mutation/survivors.json`: by file, then by the rest of
 * the mutant's id, a verdict with its reason. A run is green if it finds these and no others.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { Mutant } from './mutants.ts';

export type Judgement =
  /** No test can tell it from the code. */
  | { readonly kind: 'equivalent'; readonly reason: string }
  /** A test could, and is not worth what it costs. */
  | { readonly kind: 'accepted'; readonly reason: string };

export type Judgements = ReadonlyMap<string, Judgement>;

export function readSurvivors(path: string): Judgements {
  if (!existsSync(path)) return new Map();
  return parseSurvivors(readFileSync(path, 'utf8'), path);
}

export function parseSurvivors(text: string, path: string): Judgements {
  const files = JSON.parse(text) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const found = new Map<string, Judgement>();
  for (const [file, mutants] of Object.entries(files)) {
    for (const [rest, verdict] of Object.entries(mutants)) {
      const [, kind, reason] = /^(equivalent|accepted): (.{15,})$/s.exec(String(verdict)) ?? [];
      if ((kind !== 'equivalent' && kind !== 'accepted') || reason === undefined) {
        throw new Error(
          `${path}: the verdict of "${file} | ${rest}" must be "equivalent: <reason>" or ` +
            `"accepted: <reason>", with a reason in words, not ${JSON.stringify(verdict)}`,
        );
      }
      found.set(`${file} | ${rest}`, { kind, reason });
    }
  }
  return found;
}

/** The fate of one mutant. */
export interface Fate {
  readonly mutant: Mutant;
  readonly kind: 'failed' | 'timeout' | 'survived';
  /** The killer: a test file, or the simulation. */
  readonly by: string | undefined;
  /** How that was told: the first line of an error. */
  readonly why: string | undefined;
  /** Whether any test or seed comes by it. */
  readonly isReached: boolean;
  readonly ms: number;
}

export interface Stale {
  readonly id: string;
  readonly why: string;
}

/** The entries of the list that are not true any more. */
export function staleOf(
  judgements: Judgements,
  fates: readonly Fate[],
  scope: {
    /** The files whose mutants were listed, whether or not all of them ran. */
    readonly files: ReadonlySet<string>;
    /** The ids of all mutants of these files. */
    readonly known: ReadonlySet<string>;
    /** The files of all groups. */
    readonly everyFile: ReadonlySet<string>;
  },
): Stale[] {
  const fate = new Map(fates.map((each) => [each.mutant.id, each]));
  const stale: Stale[] = [];
  for (const id of judgements.keys()) {
    const [file = ''] = id.split(' | ');
    const { kind, by } = fate.get(id) ?? {};
    if (!scope.everyFile.has(file)) stale.push({ id, why: 'no group has this file' });
    else if (scope.files.has(file) && !scope.known.has(id)) {
      stale.push({ id, why: 'there is no such mutant any more' });
    } else if (kind === 'failed' || kind === 'timeout') {
      stale.push({ id, why: `it is killed by ${by}` });
    }
  }
  return stale;
}
