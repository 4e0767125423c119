/** Leases as an API server keeps them: one revision for everything, and a log of what happened. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { LeaseObject, SentLease } from './lease-object.ts';
import { decodeLease, mergePatch, objectOf, validate } from './lease-object.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  expired,
  invalid,
  namespaceNotFound,
  notFound,
  StatusError,
} from './status.ts';

export interface LeaseEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly lease: LeaseObject;
}

export interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

export class LeaseRegistry {
  readonly namespaces: Set<string>;
  readonly #leases = new Map<string, LeaseObject>();
  readonly #listeners = new Set<(event: LeaseEvent) => void>();
  #events: LeaseEvent[] = [];
  #revision = 1_000;
  #compacted = 0;

  constructor(namespaces: readonly string[]) {
    this.namespaces = new Set(namespaces);
  }

  get revision(): number {
    return this.#revision;
  }

  find(namespace: string, name: string): LeaseObject | undefined {
    return this.#leases.get(`${namespace}/${name}`);
  }

  get(namespace: string, name: string): LeaseObject {
    const lease = this.find(namespace, name);
    if (lease === undefined) throw notFound(name);
    return lease;
  }

  list(namespace: string, name?: string): readonly LeaseObject[] {
    return [...this.#leases.values()].filter(
      ({ metadata }) =>
        metadata.namespace === namespace && (name === undefined || metadata.name === name),
    );
  }

  create(namespace: string, body: unknown): LeaseObject {
    const sent = decodeLease(body);
    if (sent.metadata['resourceVersion']) {
      const why = 'resourceVersion should not be set on objects to be created';
      throw new StatusError(500, 'InternalError', why);
    }
    return this.#create(namespace, sent);
  }

  #create(namespace: string, sent: SentLease): LeaseObject {
    const { name } = sent.metadata;
    if (typeof name !== 'string' || name === '') {
      throw invalid('', 'metadata.name', 'Required value: name or generateName is required');
    }
    requireSameNamespace(sent, namespace);
    if (!this.namespaces.has(namespace)) throw namespaceNotFound(namespace);
    validate(name, sent);
    if (this.find(namespace, name) !== undefined) throw alreadyExists(name);
    return this.#put('ADDED', {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        ...sent.metadata,
        name,
        namespace,
        uid: randomUUID(),
        creationTimestamp: new Date().toISOString().replace(/\.\d+Z/, 'Z'),
        resourceVersion: '',
      },
      spec: sent.spec,
    });
  }

  update(namespace: string, name: string, body: unknown): LeaseObject {
    const sent = decodeLease(body);
    if (sent.metadata['name'] !== name) {
      throw badRequest(`the name of the object (${sent.metadata['name']}) does not match the URL`);
    }
    requireSameNamespace(sent, namespace);
    const { uid, resourceVersion } = sent.metadata as Preconditions;
    const present = this.find(namespace, name);
    if (present === undefined) {
      // A Lease may be made by a PUT, whatever its resourceVersion; but who sends a uid means the one
      // that was there.
      if (uid !== undefined) {
        const why = `StorageError: invalid object, Precondition failed: UID in precondition: ${uid}`;
        throw conflict(name, why);
      }
      return this.#create(namespace, sent);
    }
    requireUid(present, uid);
    if (!resourceVersion) {
      const why = 'Invalid value: 0x0: must be specified for an update';
      throw invalid(name, 'metadata.resourceVersion', why);
    }
    if (resourceVersion !== present.metadata.resourceVersion) throw conflict(name);
    return this.#replace(present, sent);
  }

  patch(namespace: string, name: string, patch: unknown): LeaseObject {
    const present = this.get(namespace, name);
    const { uid, resourceVersion } = objectOf(objectOf(patch)['metadata']) as Preconditions;
    requireUid(present, uid);
    if (resourceVersion !== undefined && resourceVersion !== present.metadata.resourceVersion) {
      throw conflict(name);
    }
    return this.#replace(present, decodeLease(mergePatch(present, patch)));
  }

  delete(namespace: string, name: string, preconditions: Preconditions = {}): LeaseObject {
    const present = this.get(namespace, name);
    const { uid, resourceVersion } = preconditions;
    requireUid(present, uid);
    if (resourceVersion !== undefined && resourceVersion !== present.metadata.resourceVersion) {
      throw conflict(name, 'the ResourceVersion in the precondition does not match');
    }
    this.#leases.delete(`${namespace}/${name}`);
    return this.#log('DELETED', present);
  }

  /** Forgets what happened up to now: who watches from before is told that it is too late. */
  compact(): void {
    this.#compacted = this.#revision;
    this.#events = [];
  }

  /**
   * @param since undefined: from now on
   * @returns what happened since, and a function that ends being told
   * @throws StatusError 410 when that was forgotten
   */
  follow(
    since: number | undefined,
    listener: (event: LeaseEvent) => void,
  ): { readonly missed: readonly LeaseEvent[]; readonly end: () => void } {
    if (since !== undefined && since < this.#compacted) throw expired();
    const missed =
      since === undefined ? [] : this.#events.filter(({ revision }) => revision > since);
    this.#listeners.add(listener);
    return { missed, end: () => void this.#listeners.delete(listener) };
  }

  #replace(present: LeaseObject, sent: SentLease): LeaseObject {
    const { name } = present.metadata;
    validate(name, sent);
    const { uid, creationTimestamp, resourceVersion, namespace } = present.metadata;
    const next: LeaseObject = {
      ...present,
      metadata: { ...sent.metadata, name, namespace, uid, creationTimestamp, resourceVersion },
      spec: sent.spec,
    };
    // A write that changes nothing is none: the same resourceVersion, and no event.
    return isDeepStrictEqual(present, next) ? present : this.#put('MODIFIED', next);
  }

  #put(type: 'ADDED' | 'MODIFIED', lease: LeaseObject): LeaseObject {
    const { namespace, name } = lease.metadata;
    const stored = this.#log(type, lease);
    this.#leases.set(`${namespace}/${name}`, stored);
    return stored;
  }

  #log(type: LeaseEvent['type'], lease: LeaseObject): LeaseObject {
    this.#revision += 1;
    const metadata = { ...lease.metadata, resourceVersion: String(this.#revision) };
    const event: LeaseEvent = { type, revision: this.#revision, lease: { ...lease, metadata } };
    this.#events.push(event);
    if (this.#events.length > 10_000) this.compact();
    // Listeners must find the registry as the event says.
    queueMicrotask(() => {
      for (const listener of [...this.#listeners]) listener(event);
    });
    return event.lease;
  }
}

function requireSameNamespace({ metadata }: SentLease, namespace: string): void {
  const given = metadata['namespace'];
  if (given === undefined || given === namespace) return;
  throw badRequest(`the namespace of the object (${given}) does not match the URL (${namespace})`);
}

function requireUid({ metadata }: LeaseObject, uid: string | undefined): void {
  if (uid === undefined || uid === metadata.uid) return;
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`;
  throw conflict(metadata.name, why);
}
