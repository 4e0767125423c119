/** Access rules: tokens and client certificates name a user, and rules say what a user may do. */
import { leaseDetails, StatusError } from './status.ts';

export interface Rule {
  readonly verbs: readonly string[];
  /** Default: every namespace. */
  readonly namespaces?: readonly string[];
  /** `resourceNames`. Default: every Lease, and making new ones. */
  readonly names?: readonly string[];
}

export interface Action {
  readonly verb: string;
  readonly namespace: string;
  /** Undefined for what is not about one Lease. */
  readonly name: string | undefined;
}

export class Accounts {
  readonly #users = new Map<string, string>();
  readonly #rules = new Map<string, readonly Rule[]>();

  /** From now on the token is that of the user. */
  addToken(token: string, user: string): void {
    this.#users.set(token, user);
  }

  removeToken(token: string): void {
    this.#users.delete(token);
  }

  /** Replaces what the user may do. Without a call a user may do nothing. */
  allow(user: string, ...rules: readonly Rule[]): void {
    this.#rules.set(user, rules);
  }

  /** @throws StatusError 401 */
  userOf(authorization: string | undefined, commonName: string | undefined): string {
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1];
    const user = token === undefined ? commonName : this.#users.get(token);
    if (user === undefined) throw new StatusError(401, 'Unauthorized', 'Unauthorized');
    return user;
  }

  isAllowed(user: string, { verb, namespace, name }: Action): boolean {
    return (this.#rules.get(user) ?? []).some(
      ({ verbs, namespaces, names }) =>
        (verbs.includes(verb) || verbs.includes('*')) &&
        (namespaces === undefined || namespaces.includes(namespace)) &&
        (names === undefined || (name !== undefined && names.includes(name))),
    );
  }

  /** @throws StatusError 403 */
  require(user: string, action: Action): void {
    if (this.isAllowed(user, action)) return;
    const { verb, namespace, name = '' } = action;
    throw new StatusError(
      403,
      'Forbidden',
      `leases.coordination.k8s.io ${name === '' ? '' : `"${name}" `}is forbidden: User "${user}" ` +
        `cannot ${verb} resource "leases" in API group "coordination.k8s.io" in the namespace ` +
        `"${namespace}"`,
      leaseDetails(name),
    );
  }
}
