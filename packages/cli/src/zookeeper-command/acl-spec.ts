import type { Acl } from '@incumbent/zookeeper';
import { acl, permissions } from '@incumbent/zookeeper';
import { UsageError } from './failure.ts';

const letters = [
  ['r', permissions.read],
  ['w', permissions.write],
  ['c', permissions.create],
  ['d', permissions.delete],
  ['a', permissions.admin],
] as const;

const form =
  'SCHEME:ID:PERMISSIONS, such as world:anyone:r, auth::rwcda or digest:joe:secret:rwcda';

/**
 * Reads `SCHEME:ID:PERMISSIONS`. The password of `digest:USER:PASSWORD:…` is hashed here;
 * `digest-hash:USER:HASH:…` has the hash that the server keeps.
 * @throws UsageError; its message shows no part that may be a password
 */
export function parseAcl(text: string): Acl {
  const match = /^([a-z0-9-]+):(.*):([a-z]*)$/is.exec(text);
  if (match === null) throw new UsageError(`an ACL is ${form}`);
  const [, scheme, id, word] = match as unknown as [string, string, string, string];
  const perms = parsePermissions(word);
  if (scheme === 'digest' || scheme === 'digest-hash') {
    const colon = id.indexOf(':');
    if (colon < 1 || colon === id.length - 1) {
      const secret = scheme === 'digest' ? 'PASSWORD' : 'HASH';
      throw new UsageError(
        `an ACL of the scheme ${scheme} is ${scheme}:USER:${secret}:PERMISSIONS`,
      );
    }
    if (scheme === 'digest') return acl.digest(id.slice(0, colon), id.slice(colon + 1), perms);
    return { scheme: 'digest', id, perms };
  }
  if (scheme === 'world' && id !== 'anyone') {
    throw new UsageError('an ACL of the scheme world is world:anyone:PERMISSIONS');
  }
  return { scheme, id, perms };
}

function parsePermissions(word: string): number {
  if (word === 'all') return permissions.all;
  let perms = 0;
  for (const letter of word) {
    const bit = letters.find(([each]) => each === letter)?.[1];
    if (bit === undefined) {
      throw new UsageError(
        `the permissions of an ACL are some of rwcda (read, write, create, delete, admin), not "${word}"`,
      );
    }
    perms |= bit;
  }
  if (perms === 0) throw new UsageError('an ACL allows something: some of rwcda stand at its end');
  return perms;
}

/** As `parseAcl` reads it. */
export function formatAcl({ scheme, id, perms }: Acl): string {
  const word = letters.map(([letter, bit]) => ((perms & bit) === 0 ? '' : letter)).join('');
  return `${scheme === 'digest' ? 'digest-hash' : scheme}:${id}:${word}`;
}
