/** A Lease as an API server takes it from a request: decoded by type, checked, normalized. */
import { badRequest, invalid } from './status.ts';

export interface LeaseMetadata {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  [field: string]: unknown;
}

export interface LeaseObject {
  readonly apiVersion: 'coordination.k8s.io/v1';
  readonly kind: 'Lease';
  readonly metadata: LeaseMetadata;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Of a request, before anything is known of it. */
export interface SentLease {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

const mostAnnotationBytes = 256 * 1024;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Fields of the spec that a server of Kubernetes 1.32 knows; others are dropped without a word. */
const specFields: Readonly<Record<string, 'string' | 'number' | 'time'>> = {
  holderIdentity: 'string',
  leaseDurationSeconds: 'number',
  acquireTime: 'time',
  renewTime: 'time',
  leaseTransitions: 'number',
  strategy: 'string',
  preferredHolder: 'string',
};

export function decodeLease(body: unknown): SentLease {
  const { apiVersion, kind, metadata, spec } = (body ?? {}) as Record<string, unknown>;
  if (apiVersion !== undefined && apiVersion !== 'coordination.k8s.io/v1') {
    throw badRequest(`the API version in the data (${apiVersion}) does not match the expected one`);
  }
  if (kind !== undefined && kind !== 'Lease') throw badRequest(`no kind "${kind}" is registered`);
  return {
    metadata: withoutNulls(objectOf(metadata)),
    spec: decodeSpec(objectOf(spec)),
  };
}

/** The checks of `ValidateLease` and `ValidateObjectMeta`. */
export function validate(name: string, { metadata, spec }: SentLease): void {
  if (name.length > 253 || !subdomain.test(name)) {
    throw invalid(name, 'metadata.name', 'a lowercase RFC 1123 subdomain must consist of …');
  }
  const annotations = objectOf(metadata['annotations']);
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    if (typeof value !== 'string') throw badRequest(`annotation ${key} is no string`);
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > mostAnnotationBytes) {
    throw invalid(name, 'metadata.annotations', `Too long: may not be more than 262144 bytes`);
  }
  const { leaseDurationSeconds: seconds, leaseTransitions: transitions } = spec;
  if (typeof seconds === 'number' && seconds <= 0) {
    throw invalid(name, 'spec.leaseDurationSeconds', 'must be greater than 0');
  }
  if (typeof transitions === 'number' && transitions < 0) {
    throw invalid(name, 'spec.leaseTransitions', 'must be greater than or equal to 0');
  }
  if (spec['preferredHolder'] && !spec['strategy']) {
    throw invalid(name, 'spec.preferredHolder', 'may only be specified if `strategy` is defined');
  }
}

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = { ...objectOf(target) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

export function objectOf(value: unknown): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw badRequest('an object is expected');
  return value as Record<string, unknown>;
}

function decodeSpec(spec: Record<string, unknown>): Record<string, unknown> {
  const decoded: Record<string, unknown> = {};
  for (const [field, type] of Object.entries(specFields)) {
    const value = spec[field];
    if (value === undefined || value === null) continue;
    if (type === 'number') {
      if (!Number.isInteger(value) || Math.abs(value as number) >= 2 ** 31) {
        throw badRequest(`Lease in version "v1" cannot be handled as a Lease: ${field}`);
      }
    } else if (typeof value !== 'string') {
      throw badRequest(`Lease in version "v1" cannot be handled as a Lease: ${field}`);
    }
    decoded[field] = type === 'time' ? microTime(value as string) : value;
  }
  return decoded;
}

/** Six digits, neither more nor less; given back in UTC. */
function microTime(text: string): string {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{6})(Z|[+-]\d\d:\d\d)$/.exec(text);
  const seconds = match === null ? Number.NaN : Date.parse(`${match[1]}${match[3]}`);
  if (match === null || Number.isNaN(seconds)) {
    throw badRequest(`parsing time "${text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse`);
  }
  return new Date(seconds).toISOString().replace('.000Z', `.${match[2]}Z`);
}

function withoutNulls(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
