import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { distOf } from '../harness/packages.ts';
import type { Walk } from './walk.ts';

/** A way to break a machine. The exploration must find each. */
export interface Break {
  readonly name: string;
  /** In the compiled machine, once. */
  readonly find: string;
  readonly replace: string;
}

export interface Bounds {
  /** How much may go wrong. */
  readonly faults: number;
  /** How many terms each candidate may have. */
  readonly terms: number;
}

/** A machine of the library that is explored. */
export interface Subject {
  readonly name: string;
  /** Its folder in `packages/`, and its file in `dist/` there. */
  readonly package: string;
  readonly file: string;
  readonly breaks: readonly Break[];
  readonly bounds: Bounds;
  /** Smaller: every break is found so, and each takes its time. */
  readonly brokenBounds: Bounds;
  /** @param machine what the file exports */
  explore(machine: unknown, bounds: Bounds): Promise<Walk>;
}

export function pathOf(subject: Subject): string {
  return join(distOf()(subject.package), subject.file);
}

/** @throws when the patch does not fit any more */
export async function brokenMachineOf(
  subject: Subject,
  { find, replace }: Break,
): Promise<unknown> {
  const path = pathOf(subject);
  const text = readFileSync(path, 'utf8');
  if (text.split(find).length !== 2) throw new Error(`the patch does not fit any more: ${find}`);
  const above = pathToFileURL(join(dirname(path), '..')).href;
  const directory = mkdtempSync(join(tmpdir(), 'incumbent-explore-'));
  try {
    const file = join(directory, basename(path).replace(/\.js$/, '.mjs'));
    writeFileSync(file, text.replace(find, () => replace).replaceAll("'../", `'${above}/`));
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
