import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Lease } from '../src/backends/kubernetes/client.ts';
import type { LeaseFormat } from '../src/backends/kubernetes/lease-format.ts';
import {
  isForeign,
  leaseOfRecord,
  recordAnnotation,
  recordOfLease,
  secondsFor,
  specAnnotation,
  tokenAnnotation,
} from '../src/backends/kubernetes/lease-format.ts';
import { RecordDamagedError, RecordTooNewError } from '../src/base/errors.ts';
import { resolveTiming } from '../src/base/timing.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';

const format: LeaseFormat = {
  election: 'billing',
  location: 'the Lease default/billing',
  timing: resolveTiming(),
};

const spec = (lease: Lease) => lease.spec ?? {};

/** One Lease on a server, written by candidates of ours and by client-go. */
class Cluster {
  lease: Lease | undefined;
  #version = 100;
  #ids = 0;
  #wallMs = Date.UTC(2026, 0, 1);

  get record(): LeaseRecord | undefined {
    return this.lease === undefined ? undefined : recordOfLease(this.lease, format);
  }

  #id(): string {
    this.#ids += 1;
    return `id-${this.#ids}`;
  }

  #stamp(): string {
    return `${new Date(this.#wallMs).toISOString().slice(0, -1)}456Z`;
  }

  /** As a server stores it: JSON, with a new version. */
  store(lease: object): void {
    this.#version += 1;
    this.#wallMs += 1_000;
    const stored = JSON.parse(JSON.stringify(lease)) as Lease;
    const metadata = { ...stored.metadata, resourceVersion: String(this.#version) };
    this.lease = { ...stored, metadata };
  }

  write(next: LeaseRecord): void {
    const now = { wallMs: this.#wallMs, uniqueId: this.#id() };
    this.store(leaseOfRecord(this.lease, next, format, 'billing', now));
  }

  win(id: string, announced = true): void {
    const previous = this.record;
    this.write({
      ...(previous ?? emptyRecord()),
      token: (previous?.token ?? 0n) + 1n,
      nonce: this.#id(),
      leaseMs: 15_000,
      holding: {
        candidate: { id, incarnation: this.#id(), addresses: [], metadata: {} },
        electedAtUnixMs: this.#wallMs,
        announced,
        actors: null,
        revoked: false,
        request: undefined,
      },
      reservation: undefined,
    });
  }

  confirm(): void {
    this.write({ ...(this.record as LeaseRecord), nonce: this.#id() });
  }

  release(): void {
    this.write({ ...(this.record as LeaseRecord), nonce: this.#id(), holding: undefined });
  }

  /** An operator's request: keeps nonce and holder. */
  drain(): void {
    const record = this.record ?? emptyRecord();
    this.write({ ...record, drains: [{ id: `drained-${this.#id()}`, untilUnixMs: 2e12 }] });
  }

  #writeSpec(fields: Lease['spec']): void {
    this.store({ ...this.lease, spec: { ...this.lease?.spec, ...fields } });
  }

  goCreate(identity: string): void {
    this.store({
      kind: 'Lease',
      metadata: { name: 'billing' },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: 15,
        acquireTime: this.#stamp(),
        renewTime: this.#stamp(),
        leaseTransitions: 0,
      },
    });
  }

  goAcquire(identity: string): void {
    if (this.lease === undefined) {
      this.goCreate(identity);
      return;
    }
    this.#writeSpec({
      holderIdentity: identity,
      leaseDurationSeconds: 15,
      acquireTime: this.#stamp(),
      renewTime: this.#stamp(),
      leaseTransitions: (spec(this.lease).leaseTransitions ?? 0) + 1,
    });
  }

  goRenew(): void {
    this.#writeSpec({ renewTime: this.#stamp() });
  }

  /** Also what some versions do to a successor (`tryRelease` by an observation that is past). */
  goRelease(): void {
    this.#writeSpec({
      holderIdentity: '',
      leaseDurationSeconds: 1,
      acquireTime: this.#stamp(),
      renewTime: this.#stamp(),
    });
  }

  label(): void {
    const labels = { touched: this.#id() };
    this.store({ ...this.lease, metadata: { ...this.lease?.metadata, labels } });
  }
}

function emptyRecord(): LeaseRecord {
  return {
    election: 'billing',
    token: 0n,
    nonce: 'nobody',
    leaseMs: 15_000,
    ended: false,
    holding: undefined,
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}

describe('our Leases as a Go controller sees them', () => {
  test('a holder, whole seconds, microseconds, and a transition more for each term', () => {
    const cluster = new Cluster();
    cluster.win('host-7');
    const first = cluster.record;
    expect(cluster.lease).toMatchObject({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: 'billing',
        annotations: { [tokenAnnotation]: '1', [recordAnnotation]: expect.stringMatching(/^\{/) },
      },
      spec: {
        holderIdentity: `host-7_${first?.holding?.candidate.incarnation}`,
        leaseDurationSeconds: 15,
        acquireTime: '2026-01-01T00:00:00.000000Z',
        renewTime: '2026-01-01T00:00:00.000000Z',
        leaseTransitions: 0,
      },
    });
    cluster.confirm();
    expect(spec(cluster.lease as Lease)).toMatchObject({
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:01.000000Z',
      leaseTransitions: 0,
    });
    cluster.win('host-8');
    expect(spec(cluster.lease as Lease)).toMatchObject({
      acquireTime: '2026-01-01T00:00:02.000000Z',
      leaseTransitions: 1,
    });
  });

  test('a release as client-go writes it', () => {
    const cluster = new Cluster();
    cluster.win('host-7');
    cluster.release();
    expect(spec(cluster.lease as Lease)).toMatchObject({
      holderIdentity: '',
      leaseDurationSeconds: 1,
      leaseTransitions: 0,
    });
    expect(cluster.record).toMatchObject({ token: 1n, holding: undefined });
  });

  test('an operator’s request leaves the spec alone, and still makes another version', () => {
    const cluster = new Cluster();
    cluster.win('host-7');
    const { lease, record } = cluster;
    cluster.drain();
    expect(cluster.lease?.spec).toEqual(lease?.spec);
    expect(cluster.lease?.metadata.annotations?.[specAnnotation]).not.toBe(
      lease?.metadata.annotations?.[specAnnotation],
    );
    expect(cluster.record?.nonce).toBe(record?.nonce);
  });

  test('unknown fields are kept', () => {
    const cluster = new Cluster();
    const strategy = { strategy: 'OldestEmulationVersion', preferredHolder: 'x', future: { a: 1 } };
    cluster.store({
      kind: 'Lease',
      metadata: {
        name: 'billing',
        uid: 'u-1',
        labels: { app: 'billing' },
        annotations: { 'example.com/note': 'theirs' },
        ownerReferences: [{ kind: 'Deployment', name: 'billing' }],
        finalizers: ['example.com/keep'],
      },
      spec: strategy,
    });
    expect(cluster.record).toBeUndefined();
    for (const step of ['win', 'confirm', 'release'] as const) {
      cluster[step]('host-7');
      expect(cluster.lease).toMatchObject({
        metadata: {
          uid: 'u-1',
          labels: { app: 'billing' },
          annotations: { 'example.com/note': 'theirs' },
          ownerReferences: [{ kind: 'Deployment', name: 'billing' }],
          finalizers: ['example.com/keep'],
        },
        spec: strategy,
      });
    }
  });

  test.each([
    ['1s', 2],
    ['1500ms', 3],
    ['5s', 6],
    ['10s', 10],
    ['15s', 15],
    ['45s', 45],
    ['61500ms', 62],
  ])('a lease of %s is told as %i s', (lease, seconds) => {
    const timing = resolveTiming({ lease });
    expect(secondsFor(timing.leaseMs, timing)).toBe(seconds);
  });

  test('of confirmations within one second a Go follower sees the first: it waits for the last', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1_000, max: 3_600_000 }),
        fc.double({ min: 0, max: 0.2, noNaN: true }),
        fc.double({ min: 0.3, max: 0.99, noNaN: true }),
        (lease, clockDrift, fraction) => {
          const belief = fraction * lease * ((1 - clockDrift) / (1 + clockDrift));
          const timing = { ...resolveTiming(), leaseMs: lease, beliefMs: belief, clockDrift };
          // Sent 1 s after the confirmation that was seen. The leader's clock is slow, the counting
          // one is fast.
          const beliefEndsMs = (1_000 + belief) / (1 - clockDrift);
          const takenMs = (secondsFor(lease, timing) * 1_000) / (1 + clockDrift);
          expect(takenMs).toBeGreaterThanOrEqual(beliefEndsMs - 1e-6);
          expect(secondsFor(lease, timing) * 1_000).toBeGreaterThanOrEqual(lease);
        },
      ),
    );
  });
});

describe('the Leases of a Go controller as we see them', () => {
  test('a Lease that nobody has held is no record', () => {
    const cluster = new Cluster();
    cluster.store({ kind: 'Lease', metadata: { name: 'billing' } });
    expect(cluster.record).toBeUndefined();
    cluster.win('host-7');
    expect(cluster.record?.token).toBe(1n);
  });

  test('its lease, its name, its transitions as the token, its renewals as writes', () => {
    const cluster = new Cluster();
    cluster.goCreate('go-1');
    const first = cluster.record;
    expect(first).toMatchObject({
      token: 1n,
      leaseMs: 15_000,
      holding: { candidate: { id: 'go-1', addresses: [], metadata: {} }, announced: true },
    });
    expect(first?.holding?.electedAtUnixMs).toBe(Date.UTC(2026, 0, 1));
    cluster.goRenew();
    expect(cluster.record?.nonce).not.toBe(first?.nonce);
    expect(cluster.record?.token).toBe(1n);
    expect(cluster.record?.holding).toEqual(first?.holding);
    cluster.goRelease();
    expect(cluster.record).toMatchObject({ token: 1n, holding: undefined });
    cluster.goAcquire('go-2');
    expect(cluster.record).toMatchObject({ token: 2n, holding: { candidate: { id: 'go-2' } } });
    cluster.win('host-7');
    expect(cluster.record).toMatchObject({ token: 3n, holding: { candidate: { id: 'host-7' } } });
    expect(spec(cluster.lease as Lease).leaseTransitions).toBe(2);
  });

  test('tokens go on after it, also over several of its terms that nobody of us has seen', () => {
    const cluster = new Cluster();
    cluster.win('a');
    cluster.release();
    cluster.win('b');
    cluster.release();
    cluster.goAcquire('go-1');
    cluster.goRelease();
    cluster.goAcquire('go-2');
    cluster.goRelease();
    expect(cluster.record).toMatchObject({ token: 4n, holding: undefined });
    cluster.goAcquire('go-1');
    cluster.win('c');
    expect(cluster.record?.token).toBe(6n);
  });

  test('a foreign program that counts no transitions still makes a new term', () => {
    const cluster = new Cluster();
    cluster.win('a');
    cluster.release();
    cluster.store({
      ...cluster.lease,
      spec: { holderIdentity: 'python', leaseDurationSeconds: 20, renewTime: 'x' },
    });
    expect(cluster.record).toMatchObject({ token: 2n, leaseMs: 20_000 });
    cluster.win('b');
    expect(cluster.record?.token).toBe(3n);
  });

  test('a leader of ours that it has followed stays to be fenced, and in the history', () => {
    const cluster = new Cluster();
    cluster.win('a');
    const leader = cluster.record?.holding?.candidate;
    cluster.goAcquire('go-1');
    expect(cluster.record?.unfenced).toEqual([{ ...leader, token: 1n }]);
    expect(cluster.record?.history).toMatchObject([{ token: 1n, id: 'a', why: 'unclean' }]);
    cluster.goRelease();
    expect(cluster.record).toMatchObject({ holding: undefined, unfenced: [{ id: 'a' }] });
  });

  test('a leader of ours that was never announced has led nothing', () => {
    const cluster = new Cluster();
    cluster.win('a', false);
    cluster.goAcquire('go-1');
    expect(cluster.record).toMatchObject({ token: 2n, unfenced: [], history: [] });
  });

  test('a leader of ours that is erased leads on: others wait, it puts it right', () => {
    const cluster = new Cluster();
    cluster.win('a');
    const before = cluster.record;
    const { acquireTime } = spec(cluster.lease as Lease);
    cluster.goRelease();
    expect(cluster.record).toEqual(before);
    cluster.confirm();
    expect(spec(cluster.lease as Lease)).toMatchObject({
      holderIdentity: `a_${before?.holding?.candidate.incarnation}`,
      leaseDurationSeconds: 15,
      leaseTransitions: 0,
      acquireTime,
    });
    expect(cluster.record).toMatchObject({ token: 1n, holding: before?.holding });
  });

  test('what an operator writes while it leads does not count as its renewal, and lasts', () => {
    const cluster = new Cluster();
    cluster.goCreate('go-1');
    const before = cluster.record;
    const { lease } = cluster;
    cluster.drain();
    expect(cluster.lease?.spec).toEqual(lease?.spec);
    expect(cluster.record).toMatchObject({ token: 1n, nonce: before?.nonce });
    cluster.goRenew();
    const renewed = cluster.record;
    expect(renewed).toMatchObject({ token: 1n, holding: before?.holding });
    expect(renewed?.nonce).not.toBe(before?.nonce);
    expect(renewed?.drains).toHaveLength(1);
    cluster.goRelease();
    expect(cluster.record).toMatchObject({ token: 1n, holding: undefined });
    cluster.goAcquire('go-2');
    expect(cluster.record).toMatchObject({ token: 2n, drains: [{}] });
  });

  test('fields that it left empty stay so when an operator writes', () => {
    const cluster = new Cluster();
    const empty = { holderIdentity: 'go-1', leaseDurationSeconds: 60, renewTime: null };
    cluster.store({ metadata: { name: 'billing' }, spec: empty });
    cluster.drain();
    expect(cluster.lease?.spec).toEqual(empty);
    expect(cluster.record).toMatchObject({ holding: { candidate: { id: 'go-1' } }, token: 1n });
  });

  test('without a duration it gets ours, and an absurd one is cut', () => {
    const cluster = new Cluster();
    cluster.store({ metadata: {}, spec: { holderIdentity: 'x', renewTime: 'y' } });
    expect(cluster.record?.leaseMs).toBe(15_000);
    const leaseDurationSeconds = 2 ** 31 - 1;
    cluster.store({ metadata: {}, spec: { holderIdentity: 'x', leaseDurationSeconds } });
    expect(cluster.record?.leaseMs).toBeLessThanOrEqual(2 ** 31 - 1);
  });
});

describe('Leases that cannot be read', () => {
  const damaged = (annotations: Record<string, string>) =>
    recordOfLease({ metadata: { resourceVersion: '1', annotations } }, format);

  test('is refused, by the name of the Lease and the annotation', () => {
    const cases: readonly (readonly [Record<string, string>, string])[] = [
      [{ [recordAnnotation]: '{' }, 'incumbent.dev/record, is not an election record (no JSON)'],
      [{ [recordAnnotation]: 'deflate:AAAA' }, '(cannot be unpacked)'],
      [{ [recordAnnotation]: '{}' }, '(unexpected format)'],
      [{ [tokenAnnotation]: 'seven' }, 'incumbent.dev/token, is not an election record'],
    ];
    for (const [annotations, message] of cases) {
      expect(() => damaged(annotations)).toThrow(RecordDamagedError);
      expect(() => damaged(annotations)).toThrow(message);
      expect(() => damaged(annotations)).toThrow('the Lease default/billing');
    }
    expect(() => damaged({ [recordAnnotation]: '{"format":99}' })).toThrow(RecordTooNewError);
  });

  test('a record without the spec that belongs to it is refused', () => {
    const cluster = new Cluster();
    cluster.win('a');
    const without = (change: Record<string, string | undefined>) => {
      const annotations = { ...cluster.lease?.metadata.annotations, ...change };
      return JSON.parse(JSON.stringify({ ...cluster.lease, metadata: { annotations } })) as Lease;
    };
    expect(() => recordOfLease(without({ [specAnnotation]: undefined }), format)).toThrow(
      'incumbent.dev/spec, is not an election record (missing',
    );
    expect(() => recordOfLease(without({ [specAnnotation]: 'x' }), format)).toThrow(
      RecordDamagedError,
    );
  });

  test('a token that an operator puts on a new Lease is where tokens go on', () => {
    const cluster = new Cluster();
    cluster.store({ metadata: { annotations: { [tokenAnnotation]: '57' } } });
    expect(cluster.record).toMatchObject({ token: 57n, holding: undefined });
    cluster.win('a');
    expect(cluster.record?.token).toBe(58n);
  });
});

describe('any order of writes by us, Go controllers and operators', () => {
  const isOurs = ({ record }: Cluster) =>
    record?.holding !== undefined && !isForeign(record.holding.candidate.incarnation);
  const isTheirs = ({ record }: Cluster) => record?.holding !== undefined;
  const steps: readonly (readonly [string, (cluster: Cluster) => unknown])[] = [
    ['we win', (cluster) => cluster.win('host')],
    ['we win unannounced', (cluster) => cluster.win('host', false)],
    ['we confirm', (cluster) => isOurs(cluster) && cluster.confirm()],
    ['we release', (cluster) => isOurs(cluster) && cluster.release()],
    ['an operator drains', (cluster) => cluster.drain()],
    ['Go acquires', (cluster) => cluster.goAcquire('go-1')],
    ['another Go acquires', (cluster) => cluster.goAcquire('go-2')],
    ['Go renews', (cluster) => !isOurs(cluster) && isTheirs(cluster) && cluster.goRenew()],
    ['Go releases', (cluster) => !isOurs(cluster) && isTheirs(cluster) && cluster.goRelease()],
    ['Go erases whoever leads', (cluster) => cluster.lease !== undefined && cluster.goRelease()],
    ['somebody sets a label', (cluster) => cluster.lease !== undefined && cluster.label()],
  ];

  test('never lets the token fall, nor two terms have the same one', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...steps), { minLength: 1, maxLength: 40 }),
        (sequence) => {
          const cluster = new Cluster();
          const terms = new Map<bigint, string>();
          let last = 0n;
          for (const [, step] of sequence) {
            const before = cluster.record;
            step(cluster);
            const { record } = cluster;
            if (record === undefined) continue;
            expect(record.token).toBeGreaterThanOrEqual(last);
            last = record.token;
            const holder = record.holding?.candidate.incarnation;
            if (holder === undefined) continue;
            expect(terms.get(record.token) ?? holder).toBe(holder);
            terms.set(record.token, holder);
            // A new holder always is a new term.
            if (before?.holding?.candidate.incarnation !== holder) {
              expect(record.token).toBeGreaterThan(before?.token ?? 0n);
            }
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test('our own terms rise by what client-go counts', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...steps), { maxLength: 30 }), (sequence) => {
        const cluster = new Cluster();
        cluster.win('first');
        for (const [, step] of sequence) step(cluster);
        cluster.win('last');
        const transitions = spec(cluster.lease as Lease).leaseTransitions ?? 0;
        expect(cluster.record?.token).toBe(BigInt(transitions) + 1n);
      }),
    );
  });
});
