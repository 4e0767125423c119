/** Access control: the schemes world, auth, digest and ip, and the super user. */
import { createHash } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { Acl } from '@incumbent/zookeeper';
import { errorCodes } from '@incumbent/zookeeper/internal';
import { Refusal } from './refusal.ts';

export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

export const perms = { read: 1, write: 2, create: 4, delete: 8, admin: 16 } as const;

/** `user:base64(sha1(user:password))` */
export function digestId(userAndPassword: string): string {
  const hash = createHash('sha1').update(userAndPassword).digest('base64');
  return `${userAndPassword.split(':', 1)[0]}:${hash}`;
}

/**
 * The identity of a client after an auth request.
 * @throws Refusal with -115 for an unknown scheme
 */
export function authenticate(
  scheme: string,
  auth: Uint8Array | null,
  address: string,
  superDigest: string | undefined,
): readonly Identity[] {
  if (scheme === 'ip') return [{ scheme, id: address }];
  if (scheme !== 'digest' || auth === null) throw new Refusal(errorCodes.authFailed);
  const id = digestId(new TextDecoder().decode(auth));
  const identity = { scheme, id };
  return id === superDigest ? [{ scheme: 'super', id: '' }, identity] : [identity];
}

/** The user of an identity, as whoAmI shows it. */
export function userOf(identity: Identity): string {
  return identity.scheme === 'digest' ? (identity.id.split(':', 1)[0] as string) : identity.id;
}

/** @throws Refusal with -102 unless `identities` have one of the permissions in `wanted` */
export function checkAcl(
  acl: readonly Acl[],
  wanted: number,
  identities: readonly Identity[],
): void {
  if (acl.length === 0 || identities.some(({ scheme }) => scheme === 'super')) return;
  for (const entry of acl) {
    if ((entry.perms & wanted) === 0) continue;
    if (entry.scheme === 'world' && entry.id === 'anyone') return;
    if (identities.some((identity) => matches(entry, identity))) return;
  }
  throw new Refusal(errorCodes.noAuth);
}

/**
 * The ACL to keep: without duplicates, and with the client's identities in place of `auth`.
 * @throws Refusal with -114
 */
export function fixAcl(
  acl: readonly Acl[] | null,
  identities: readonly Identity[],
): readonly Acl[] {
  const kept: Acl[] = [];
  const unique = new Map((acl ?? []).map((entry) => [JSON.stringify(entry), entry]));
  for (const entry of unique.values()) {
    if (entry.scheme === 'world' && entry.id === 'anyone') {
      kept.push(entry);
    } else if (entry.scheme === 'auth') {
      const own = identities.filter(({ scheme }) => scheme === 'digest');
      if (own.length === 0) throw new Refusal(errorCodes.invalidAcl);
      kept.push(...own.map((identity) => ({ perms: entry.perms, ...identity })));
    } else if (isValidId(entry)) {
      kept.push(entry);
    } else {
      throw new Refusal(errorCodes.invalidAcl);
    }
  }
  if (kept.length === 0) throw new Refusal(errorCodes.invalidAcl);
  return kept;
}

/** The ACL without the hashes of passwords, for clients that may not set it. */
export function maskAcl(acl: readonly Acl[]): readonly Acl[] {
  return acl.map((entry) =>
    entry.scheme === 'digest' ? { ...entry, id: entry.id.replace(/:.*/, ':x') } : entry,
  );
}

function isValidId({ scheme, id }: Acl): boolean {
  if (scheme === 'digest') return /^[^:]*:[^:]+$/.test(id);
  return scheme === 'ip' && networkOf(id) !== undefined;
}

function matches(entry: Acl, identity: Identity): boolean {
  if (entry.scheme !== identity.scheme) return false;
  if (entry.scheme !== 'ip') return entry.id === identity.id;
  const network = networkOf(entry.id);
  const client = networkOf(identity.id);
  if (network === undefined || client === undefined) return false;
  return (network.address ^ client.address) >>> (32 - network.bits) === 0 || network.bits === 0;
}

/** IPv4 only: the server that is imitated listens on 127.0.0.1. */
function networkOf(id: string): { address: number; bits: number } | undefined {
  const [address, bits = '32', ...rest] = id.split('/');
  if (!isIPv4(address ?? '') || !/^\d+$/.test(bits) || Number(bits) > 32 || rest.length > 0) {
    return undefined;
  }
  const bytes = (address as string).split('.').map(Number);
  return { address: bytes.reduce((sum, byte) => (sum << 8) | byte, 0), bits: Number(bits) };
}
