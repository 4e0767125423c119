import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { InvalidOptionError } from '../../base/errors.ts';

/** The options of `kubernetes`. */
export interface KubernetesOptions {
  /** The namespace of the Leases. Default: that of the service account or context, or `default`. */
  readonly namespace?: string;
  /** The name of the Lease that holds an election. Default: the name of the election. */
  readonly leaseName?: (election: string) => string;
}

/**
 * Names a term. No API server checks tokens. So compare `token` where effects arrive, or
 * write with `withToken`.
 */
export interface KubernetesGuard {
  /** The token of the term. */
  readonly token: bigint;
  readonly namespace: string;
  readonly leaseName: string;
}

const known: Readonly<Record<keyof KubernetesOptions, true>> = { namespace: true, leaseName: true };

/** @throws InvalidOptionError */
export function checkOptions(options: KubernetesOptions): void {
  checkNames('kubernetes()', options, known);
  const { namespace, leaseName } = options;
  if (namespace !== undefined) checkNamespace(namespace);
  if (leaseName !== undefined && typeof leaseName !== 'function') {
    throw new InvalidOptionError(
      `leaseName must be a function that names the Lease of an election, not ${describeValue(leaseName)}`,
    );
  }
}

/** @throws InvalidOptionError */
export function checkNamespace(namespace: unknown): string {
  if (typeof namespace === 'string' && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) {
    return namespace;
  }
  throw new InvalidOptionError(
    `namespace ${describeValue(namespace)} is no name of a namespace: 1 to 63 lower case letters, ` +
      'digits and "-", which begin and end with a letter or digit (DNS-1123 label)',
  );
}

/** @throws InvalidOptionError for a name that no Lease can have */
export function leaseNameOf(election: string, { leaseName }: KubernetesOptions): string {
  const name: unknown = leaseName === undefined ? election : leaseName(election);
  if (typeof name === 'string' && name.length <= 253 && subdomain.test(name)) return name;
  const rule =
    'at most 253 lower case letters, digits, "-" and ".", where each part between dots begins and ' +
    'ends with a letter or digit (DNS-1123 subdomain)';
  throw new InvalidOptionError(
    leaseName === undefined
      ? `the election "${election}" cannot be the name of a Lease: ${rule}; name it so, or give ` +
          'kubernetes() a leaseName that makes one of it'
      : `leaseName made ${describeValue(name)} of the election "${election}", which cannot be the ` +
          `name of a Lease: ${rule}`,
  );
}

/**
 * The Lease of a lease that is part of something: `devices/3` is `devices.3`.
 * @throws InvalidOptionError for a name that no Lease can have
 */
export function partNameOf(name: string, options: KubernetesOptions): string {
  const slash = name.lastIndexOf('/');
  if (slash < 1) return leaseNameOf(name, options);
  return leaseNameOf(`${leaseNameOf(name.slice(0, slash), options)}.${name.slice(slash + 1)}`, {});
}

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
