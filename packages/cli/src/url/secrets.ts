/** Secrets of a store's URL: in the URL, in a variable or in a file. No message repeats one. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Environment } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import type { Refuse } from './values.ts';

/** Where a secret is, or the secret itself. */
export type SecretSource =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'env'; readonly name: string }
  | { readonly kind: 'file'; readonly path: string };

/** The places where a secret or a file of the URL is looked for. */
export interface Machine {
  readonly env: Environment;
  readonly cwd: string;
}

export const secretForm = 'env:NAME (a variable) or file:/PATH';

/** @param example of names and paths, such as `ZK_AUTH` and `/etc/zookeeper/auth` */
export function secretSource(example: {
  readonly name: string;
  readonly path: string;
}): (text: string, refuse: Refuse) => SecretSource {
  return (text, refuse) => {
    if (text.startsWith('env:')) {
      const name = text.slice('env:'.length);
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
        refuse(`has behind env: no name of a variable, such as env:${example.name}`);
      }
      return { kind: 'env', name };
    }
    if (text.startsWith('file:')) {
      const path = text.slice('file:'.length);
      if (path === '') refuse(`has behind file: no path, such as file:${example.path}`);
      return { kind: 'file', path };
    }
    return { kind: 'literal', text };
  };
}

/** The text to show for a secret parameter: the place of the secret, or `***`. */
export function showSource(text: string): string {
  return /^(?:env|file):/.test(text) ? text : '***';
}

/**
 * @param what such as `auth of --store`
 * @returns the secret as it was written, and the name of its place
 * @throws CommandError when it is missing
 */
export async function contentOf(
  source: SecretSource,
  what: string,
  { env, cwd }: Machine,
): Promise<[text: string, where: string]> {
  if (source.kind === 'literal') return [source.text, `the parameter ${what}`];
  if (source.kind === 'file') {
    return [await readText(source.path, cwd, what), `the file ${source.path} (${what})`];
  }
  const text = env[source.name];
  if (!text) throw unusable(`the variable ${source.name} (${what}) is not set`);
  return [text, `the variable ${source.name}`];
}

/** The same for a secret of one line: editors end files with a line break. */
export async function lineOf(
  source: SecretSource,
  what: string,
  machine: Machine,
): Promise<string> {
  const [text, where] = await contentOf(source, what, machine);
  const line = text.replace(/\r?\n$/, '');
  if (line === '') throw unusable(`${where} is empty`);
  if (/[\r\n]/.test(line)) throw unusable(`${where} has more than one line`);
  return line;
}

/** @throws CommandError for a file that cannot be read */
export async function readText(path: string, cwd: string, what: string): Promise<string> {
  try {
    return await readFile(resolve(cwd, path), 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw unusable(`the file ${path} (${what}) cannot be read: ${why}`);
  }
}

export function unusable(message: string): CommandError {
  return new CommandError('BAD_CREDENTIALS', exitCodes.usage, message);
}
