import type { Stats } from 'node:fs';
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';

export type FoundProgram =
  /** As a shell would run it; contains a slash. */
  | { readonly path: string; readonly problem?: undefined }
  | { readonly path?: undefined; readonly problem: ProgramProblem };

export interface ProgramProblem {
  readonly kind: 'not-found' | 'not-executable';
  /** The exit code that a shell would have: 127 or 126. */
  readonly exitCode: 126 | 127;
  readonly message: string;
}

/**
 * Finds `name` as execvp(3) does. A name with a slash is a path from `cwd`. Any other is looked for
 * in the directories of `env.PATH`, where a file that cannot be executed is passed over.
 *
 * Also looks whether the interpreter of a script is there. After the start a missing one looks like
 * a program that exits with 126 or 127 by itself.
 */
export function findProgram(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): FoundProgram {
  if (name === '' || name.includes('\0')) return notFound(name, 'no program has this name');
  const candidates = name.includes('/')
    ? [name]
    : (env['PATH'] ?? '/usr/bin:/bin').split(':').map((dir) => `${dir === '' ? '.' : dir}/${name}`);
  let refused: string | undefined;
  for (const candidate of candidates) {
    const absolute = resolve(cwd, candidate);
    const why = whyNot(absolute);
    // Some shells take `exec -x` for an option.
    if (why === undefined)
      return { path: candidate.startsWith('-') ? `./${candidate}` : candidate };
    if (why !== 'absent') refused ??= `${absolute}: ${why}`;
  }
  if (refused === undefined) {
    return notFound(name, name.includes('/') ? 'no such file' : 'not found in PATH');
  }
  return { problem: { kind: 'not-executable', exitCode: 126, message: `cannot run ${refused}` } };
}

function notFound(name: string, why: string): FoundProgram {
  const message = `cannot run ${JSON.stringify(name)}: ${why}`;
  return { problem: { kind: 'not-found', exitCode: 127, message } };
}

function whyNot(path: string): string | undefined {
  let stats: Stats | undefined;
  try {
    stats = statSync(path, { throwIfNoEntry: false });
  } catch {
    return 'permission denied';
  }
  if (stats === undefined) return 'absent';
  if (stats.isDirectory()) return 'it is a directory';
  if (!stats.isFile()) return 'it is not a file';
  if (!isExecutable(path)) return 'permission denied';
  const interpreter = interpreterOf(path);
  if (interpreter === undefined || isExecutable(interpreter)) return undefined;
  return `its interpreter ${interpreter} cannot be run`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The program after `#!`, if there is one and we may read it. */
function interpreterOf(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return undefined;
  }
  try {
    const head = Buffer.alloc(256);
    const text = head.toString('utf8', 0, readSync(fd, head));
    return /^#![ \t]*(\/[^\s\0]+)/.exec(text)?.[1];
  } finally {
    closeSync(fd);
  }
}
