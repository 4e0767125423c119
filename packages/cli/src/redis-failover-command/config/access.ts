/** How to log in to the Redis servers. No message repeats a secret. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { NodeAccess } from '@incumbent/redis-failover';
import type { Settings } from './collect.ts';
import { readGiven } from './files.ts';
import { quote, refuse } from './given.ts';
import { tlsFiles } from './tls.ts';

/** @throws SettingError, also for a file that cannot be read */
export async function accessOf(settings: Settings, cwd: string): Promise<NodeAccess> {
  const [password, tls] = await Promise.all([passwordOf(settings, cwd), tlsOf(settings, cwd)]);
  const username = settings.get('username');
  if (username !== undefined && password === undefined) {
    refuse(
      username,
      'names a user without a password: give --password-file FILE or INCUMBENT_REDIS_PASSWORD',
    );
  }
  return {
    ...(username === undefined ? {} : { username: String(username.value) }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  };
}

/**
 * The warning about a file that holds the password itself and that others can read. undefined if it
 * is safe.
 */
export async function looseFile(
  settings: Settings,
  file: unknown,
  cwd: string,
): Promise<string | undefined> {
  const given = settings.get('password');
  if (typeof file !== 'string' || given === undefined || given.where === '') return undefined;
  const { mode } = await stat(resolve(cwd, file));
  if ((mode & 0o004) === 0) return undefined;
  return `${file} holds a password and can be read by everybody on this machine: chmod o-r ${file}`;
}

async function passwordOf(settings: Settings, cwd: string): Promise<string | undefined> {
  const file = settings.get('password_file');
  const password = settings.get('password');
  if (file !== undefined && password !== undefined && file.rank === password.rank) {
    refuse(file, 'and password are both there: keep one of them');
  }
  if (file !== undefined && (password === undefined || file.rank > password.rank)) {
    // Editors end files with a line break.
    const line = (await readGiven(file, cwd)).replace(/\r?\n$/, '');
    if (line === '') refuse(file, `names ${quote(file.value)}, which is empty`);
    if (/[\r\n]/.test(line))
      refuse(file, `names ${quote(file.value)}, which has more than one line`);
    return line;
  }
  return password === undefined ? undefined : String(password.value);
}

async function tlsOf(settings: Settings, cwd: string): Promise<NodeAccess['tls']> {
  const asked = settings.get('tls');
  if (asked !== undefined && typeof asked.value !== 'boolean') {
    refuse(asked, `is true or false, not ${quote(asked.value)}`);
  }
  const files = await tlsFiles(settings, 'tls', cwd);
  if (asked?.value === false && files !== undefined) {
    refuse(asked, 'is false, and there are settings for TLS besides');
  }
  return asked?.value === true ? (files ?? {}) : files;
}
