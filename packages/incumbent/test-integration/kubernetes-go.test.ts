/** Elections that candidates of ours and Go controllers hold together. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { FakeApiServer } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubernetesApi } from '../src/backends/kubernetes/index.ts';
import { apiServer, kubernetes } from '../src/backends/kubernetes/index.ts';
import type { Term } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import type { GoElectorOptions } from './support/go-elector.ts';
import { GoElector } from './support/go-elector.ts';

const go = { leaseDurationMs: 2_000, renewDeadlineMs: 1_200, retryPeriodMs: 250 } as const;

let server: FakeApiServer;
let api: KubernetesApi;

beforeAll(async () => {
  server = await FakeApiServer.start({ plain: true });
  api = apiServer(server.access);
});

afterAll(() => server?.close());

/** A connection that can be cut: requests get no answer any more. */
class Cable implements KubernetesApi {
  readonly url = 'a cable';
  readonly namespace = undefined;
  isCut = false;

  request(request: Parameters<KubernetesApi['request']>[0]): ReturnType<KubernetesApi['request']> {
    return this.isCut ? never(request.signal) : api.request(request);
  }

  watch(request: Parameters<KubernetesApi['watch']>[0]): ReturnType<KubernetesApi['watch']> {
    return this.isCut ? never(request.signal) : api.watch(request);
  }

  close(): void {}
}

async function never(signal: AbortSignal | undefined): Promise<never> {
  if (signal !== undefined && !signal.aborted) await once(signal, 'abort');
  throw signal?.reason;
}

/** A member, ours or Go's, that can be ended in more than one way. */
interface Member {
  readonly name: string;
  isLeading(): boolean;
  /** Gives the lease back. */
  stop(): Promise<void>;
  /** It is not heard of any more, and believes as long as it may. */
  cut(): void;
}

class Crowd {
  readonly #leaseName: string;
  readonly #members = new Set<Member>();
  readonly tokens: bigint[] = [];
  readonly violations: string[] = [];
  changes = 0;
  #count = 0;
  #wake: () => void = () => {};

  constructor(leaseName: string) {
    this.#leaseName = leaseName;
  }

  ours(): Member {
    const cable = new Cable();
    this.#count += 1;
    const name = `ours-${this.#count}`;
    const election = createElection({
      name: this.#leaseName,
      backend: kubernetes(cable),
      candidate: { id: name },
      lease: '1500ms',
    });
    let term: Term | undefined;
    const member: Member = {
      name,
      isLeading: () => term?.isLeading() === true,
      stop: () => election.close(),
      cut: () => {
        cable.isCut = true;
      },
    };
    election
      .lead(async (leading) => {
        term = leading;
        this.tokens.push(leading.token);
        this.#began(member);
        if (!leading.signal.aborted) await once(leading.signal, 'abort');
      })
      .catch(() => {});
    this.#members.add(member);
    return member;
  }

  go(): Member {
    const cable = new Cable();
    this.#count += 1;
    const name = `go-${this.#count}`;
    const options: GoElectorOptions = { ...go, identity: name, leaseName: this.#leaseName };
    const elector = new GoElector(cable, { ...options, releaseOnCancel: true });
    const cancel = new AbortController();
    const member: Member = {
      name,
      isLeading: () => elector.isLeading,
      async stop() {
        cancel.abort();
        await running;
      },
      cut: () => {
        cable.isCut = true;
      },
    };
    elector.onStartedLeading = () => this.#began(member);
    const running = elector.run(cancel.signal);
    this.#members.add(member);
    return member;
  }

  #began(member: Member): void {
    this.changes += 1;
    for (const other of this.#members) {
      if (other !== member && other.isLeading() && member.isLeading()) {
        this.violations.push(`${member.name} leads beside ${other.name}`);
      }
    }
    this.#wake();
  }

  /** Resolves with the leader after so many changes. */
  async leaderAfter(changes: number): Promise<Member> {
    const startMs = performance.now();
    while (performance.now() - startMs < 30_000) {
      const leader = [...this.#members].find((member) => member.isLeading());
      if (this.changes >= changes && leader !== undefined) return leader;
      await Promise.race([
        sleep(50),
        new Promise<void>((resolve) => {
          this.#wake = resolve;
        }),
      ]);
    }
    throw new Error(`nobody leads after ${this.changes} of ${changes} changes`);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#members].map((member) => member.stop()));
  }
}

describe.concurrent('beside Go controllers', () => {
  test('leaders change, clean and cut off, ours and Go’s: never two, and the token only rises', async () => {
    const crowd = new Crowd('mixed');
    const left: Member[] = [];
    try {
      crowd.ours();
      crowd.go();
      for (let change = 1; change <= 14; change += 1) {
        const leader = await crowd.leaderAfter(change);
        // The next is of the other kind, so that every kind follows every kind.
        if (change % 3 === 0) crowd.ours();
        else if (leader.name.startsWith('ours')) crowd.go();
        else crowd.ours();
        if (change % 2 === 0) await leader.stop();
        else leader.cut();
        left.push(leader);
      }
      await crowd.leaderAfter(15);
    } finally {
      await crowd.close();
    }
    expect(crowd.violations).toEqual([]);
    expect(crowd.tokens).toEqual([...new Set(crowd.tokens)].sort((a, b) => Number(a - b)));
    expect(new Set(left.map(({ name }) => name.split('-')[0]))).toEqual(new Set(['ours', 'go']));
  });

  // client-go compares records whose times are whole seconds: of all confirmations within one second it
  // sees but the first, and counts the lease from there.
  test.for([600, 700, 800, 900])(
    'a Go follower waits for the belief of a leader that is cut off %i ms into a second',
    async (cutAtMs) => {
      const leaseName = `cut-${cutAtMs}`;
      const cable = new Cable();
      const election = createElection({
        name: leaseName,
        backend: kubernetes(cable),
        lease: '1s',
        renewEvery: '100ms',
      });
      const term = await election.campaign();
      const cancel = new AbortController();
      const elector = new GoElector(api, {
        ...go,
        identity: 'go',
        leaseName,
        retryPeriodMs: 25,
      });
      let beside: boolean | undefined;
      elector.onStartedLeading = () => {
        beside = term.isLeading();
        cancel.abort();
      };
      const running = elector.run(cancel.signal);
      // It has to see the first confirmation of a second.
      await sleep(2_000 - (Date.now() % 1_000) + cutAtMs);
      cable.isCut = true;
      await running;
      expect(beside).toBe(false);
      await term[Symbol.asyncDispose]();
      await election.close();
    },
  );

  test('a Go leader is shown to observers, and followed when it releases', async () => {
    const leaseName = 'observed-go';
    const election = createElection({ name: leaseName, backend: kubernetes(api), lease: '1500ms' });
    const cancel = new AbortController();
    const options = { ...go, identity: 'controller-0_1a2b', leaseName, releaseOnCancel: true };
    const elector = new GoElector(api, options);
    const running = elector.run(cancel.signal);
    const seen: (string | undefined)[] = [];
    const stop = new AbortController();
    for await (const view of election.observe({ signal: stop.signal })) {
      seen.push(view.state === 'led' ? view.leader?.id : view.state);
      if (view.state === 'led') break;
    }
    expect(seen.at(-1)).toBe('controller-0_1a2b');
    const following = election.campaign();
    cancel.abort();
    await running;
    const term = await following;
    expect(term.token).toBe(2n);
    const lease = server.registry.get('default', leaseName);
    expect(lease.spec['leaseTransitions']).toBe(1);
    await term[Symbol.asyncDispose]();
    await election.close();
    // And a Go program takes part again.
    const next = new AbortController();
    const again = new GoElector(api, { ...options, identity: 'controller-0_3c4d' });
    again.onStartedLeading = () => next.abort();
    await again.run(next.signal);
    expect(again.terms).toBe(1);
    const view = await createElection({ name: leaseName, backend: kubernetes(api) }).leader();
    expect(view).toMatchObject({ state: 'vacant', token: 3n });
  });

  test('a leader that a Go controller erases by its late release goes on, and nobody of ours follows', async () => {
    const leaseName = 'erased';
    const election = createElection({ name: leaseName, backend: kubernetes(api), lease: '4s' });
    const follower = createElection({ name: leaseName, backend: kubernetes(api), lease: '4s' });
    const term = await election.campaign();
    const waiting = follower.campaign({ wait: '3s' });
    waiting.catch(() => {});
    for (let round = 0; round < 4; round += 1) {
      const { spec } = server.registry.get('default', leaseName);
      server.registry.patch('default', leaseName, {
        spec: { ...spec, holderIdentity: '', leaseDurationSeconds: 1 },
      });
      await sleep(500);
    }
    expect(term.isLeading()).toBe(true);
    await expect(waiting).rejects.toThrow('was not won within');
    expect(server.registry.get('default', leaseName).spec['holderIdentity']).not.toBe('');
    await term[Symbol.asyncDispose]();
    await Promise.all([election.close(), follower.close()]);
  });
});
