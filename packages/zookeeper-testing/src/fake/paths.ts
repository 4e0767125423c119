import { errorCodes } from '@incumbent/zookeeper/internal';
import { Refusal } from './refusal.ts';

/** The parent as the server cuts it off: that of `/a` is the empty string, another name of `/`. */
export function cutParent(path: string): string {
  const slash = path.lastIndexOf('/');
  if (slash === -1 || path.includes('\0')) throw new Refusal(errorCodes.badArguments);
  return path.slice(0, slash);
}

export function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The parent by the name that watches know it by. */
export function watchedParent(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

/** @throws Refusal with -8 for a path that no node can have */
export function validatePath(path: string): void {
  if (!isValid(path)) throw new Refusal(errorCodes.badArguments);
}

function isValid(path: string): boolean {
  if (path === '/') return true;
  if (!path.startsWith('/') || path.endsWith('/')) return false;
  for (const name of path.slice(1).split('/')) {
    if (name === '' || name === '.' || name === '..') return false;
  }
  for (let i = 0; i < path.length; i += 1) {
    if (isRefused(path.charCodeAt(i))) return false;
  }
  return true;
}

/** Controls, surrogates, the private use area and specials, as `PathUtils` has them. */
function isRefused(unit: number): boolean {
  return (
    unit <= 0x1f ||
    (unit >= 0x7f && unit <= 0x9f) ||
    (unit >= 0xd800 && unit <= 0xf8ff) ||
    unit >= 0xfff0
  );
}
