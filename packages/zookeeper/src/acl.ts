import { createHash } from 'node:crypto';
import { InvalidArgumentError } from './errors.ts';
import type { Acl } from './protocol/messages.ts';

/** Bits of an ACL's `perms`. Add them up. */
export const permissions = {
  read: 1,
  write: 2,
  create: 4,
  delete: 8,
  /** The right to set the ACL itself. */
  admin: 16,
  all: 31,
} as const;

/**
 * Makes entries of ACLs. Every function takes the permissions last (default: all of them), and
 * throws InvalidArgumentError for values that cannot be.
 *
 *     await client.create('/a', null, { acl: [acl.digest('joe', 'secret'), acl.world(permissions.read)] })
 */
export const acl = {
  /** Every client. */
  world(perms: number = permissions.all): Acl {
    return make('world', 'anyone', perms);
  },
  /** Every identity with which the session that creates the node has authenticated. */
  auth(perms: number = permissions.all): Acl {
    return make('auth', '', perms);
  },
  /** A user of the digest scheme. Only the hash of the password is sent. */
  digest(user: string, password: string, perms: number = permissions.all): Acl {
    if (user.includes(':') || user === '') {
      throw new InvalidArgumentError(
        `a digest user must not be empty or contain ":", unlike ${JSON.stringify(user)}`,
      );
    }
    return make('digest', `${user}:${digestOf(`${user}:${password}`)}`, perms);
  },
  /** Clients from an address, or from a network such as `10.0.0.0/8`. */
  ip(address: string, perms: number = permissions.all): Acl {
    return make('ip', address, perms);
  },
  /** The holder of a client certificate, by its subject, such as `CN=joe,O=us`. */
  x509(subject: string, perms: number = permissions.all): Acl {
    return make('x509', subject, perms);
  },
  /** A user that SASL has authenticated. */
  sasl(user: string, perms: number = permissions.all): Acl {
    return make('sasl', user, perms);
  },
} as const;

/** The hash of `user:password` in the digest scheme: base64 of its SHA-1. */
function digestOf(userAndPassword: string): string {
  return createHash('sha1').update(userAndPassword).digest('base64');
}

function make(scheme: string, id: string, perms: number): Acl {
  checkPermissions(perms);
  return { perms, scheme, id };
}

/** @throws InvalidArgumentError unless `list` can be sent as an ACL */
export function checkAcl(list: readonly Acl[]): void {
  if (!Array.isArray(list) || list.length === 0) {
    throw new InvalidArgumentError('an ACL has at least one entry; acl.world() allows everybody');
  }
  for (const entry of list) {
    if (typeof entry?.scheme !== 'string' || typeof entry.id !== 'string') {
      throw new InvalidArgumentError(
        'an entry of an ACL is {perms, scheme, id}; the functions of `acl` make them',
      );
    }
    checkPermissions(entry.perms);
  }
}

function checkPermissions(perms: number): void {
  if (!Number.isInteger(perms) || perms < 1 || perms > permissions.all) {
    throw new InvalidArgumentError(
      `permissions are a sum of read 1, write 2, create 4, delete 8, admin 16, not ${String(perms)}`,
    );
  }
}
