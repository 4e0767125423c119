/**
 * The plan that the processes of a run agree upon: written once, before the first of them starts.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mutant } from './mutants.ts';
import { switched } from './mutate-text.ts';

/** A project of `vitest.config.ts`. */
export type Suite = 'unit' | 'integration';

export interface Settings {
  /** The repository. */
  readonly root: string;
  /** Only test files with this in their path. */
  readonly tests: string | undefined;
  readonly processes: number;
}

export interface Plan extends Settings {
  /** The text of each mutated source by its path, with all of its mutants behind switches. */
  readonly sources: Readonly<Record<string, string>>;
  /** The set-up file that notes which test reaches which mutant. */
  readonly noteReached: string;
}

/** @returns of a module beside this one, once it is compiled */
export function compiled(name: string): string {
  return fileURLToPath(new URL(`./${name}.js`, import.meta.url));
}

/** @param mutants a mutant's number is its place in this list */
export function makePlan(
  mutants: readonly Mutant[],
  settings: Settings,
  read: (file: string) => string,
): Plan {
  const ofFile = new Map<string, { number: number; changes: Mutant['changes'] }[]>();
  for (const [number, { file, changes }] of mutants.entries()) {
    const list = ofFile.get(file) ?? [];
    ofFile.set(file, list);
    list.push({ number, changes });
  }
  const sources: Record<string, string> = {};
  for (const [file, list] of ofFile) {
    sources[join(settings.root, file)] = switched(read(file), list, compiled('switch'));
  }
  return { ...settings, sources, noteReached: compiled('note-reached') };
}

/** Whether a test file is asked about mutants. Those on real servers are, of packages that have any. */
export function isTestOf({ root, sources }: Plan, suite: Suite, testFile: string): boolean {
  if (suite === 'unit') return true;
  const packageOf = (path: string) => relative(root, path).split('/').slice(0, 2).join('/');
  return Object.keys(sources).some((source) => packageOf(source) === packageOf(testFile));
}

export function writePlan(plan: Plan, directory: string): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, 'plan.json');
  writeFileSync(path, JSON.stringify(plan));
  return path;
}

export function readPlan(path: string): Plan {
  return JSON.parse(readFileSync(path, 'utf8')) as Plan;
}

export function writeText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
