import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { SettingError } from '../failure.ts';
import type { Given } from './given.ts';
import { quote } from './given.ts';

/** The content of the file that a setting names. @throws SettingError */
export async function readGiven({ value, where, name }: Given, cwd: string): Promise<string> {
  const path = String(value);
  try {
    return await readFile(resolve(cwd, path), 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'which is not there' : `which cannot be read: ${message}`;
    throw new SettingError(`${where}${name} names ${quote(path)}, ${why}`);
  }
}
