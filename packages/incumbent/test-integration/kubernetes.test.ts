/** Elections on Leases when something is wrong: rights, tokens, TLS, the namespace, the server, the watch. */
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Rule } from '@incumbent/servers';
import { FakeApiServer, StatusError, waitFor } from '@incumbent/servers';
import { KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubernetesApi, KubernetesObject } from '../src/backends/kubernetes/index.ts';
import {
  apiServer,
  fromKubeConfig,
  inCluster,
  kubernetes,
  missingRights,
  recordAnnotation,
  tokenAnnotation,
  withToken,
} from '../src/backends/kubernetes/index.ts';
import type { Backend, Election, ElectionOptions } from '../src/index.ts';
import {
  createElection,
  RecordDamagedError,
  RefusedError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../src/index.ts';

/** No machine is so slow that a term ends by it. For tests in which none may run out. */
const patient = {
  lease: '60s',
  renewEvery: '300ms',
  pollEvery: '300ms',
  retryBackoff: '100ms',
} as const;

/** For tests that count: so seldom that it is not taken for news. */
const rare = { lease: '60s', renewEvery: '2s', pollEvery: '30s' } as const;

let server: FakeApiServer;
let directory: string;

beforeAll(async () => {
  server = await FakeApiServer.start();
  directory = await mkdtemp(join(tmpdir(), 'incumbent-kubernetes-'));
});

afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

let accounts = 0;

/** A new account with these rights. */
function account(...rules: Rule[]): { readonly user: string; readonly token: string } {
  accounts += 1;
  const [user, token] = [`user-${accounts}`, `token-${accounts}`];
  server.accounts.addToken(token, user);
  server.accounts.allow(user, ...rules);
  return { user, token };
}

const all: Rule = { verbs: ['get', 'create', 'update', 'watch'] };

function open(
  name: string,
  backend: Backend,
  options: Partial<ElectionOptions<unknown>> = {},
): Election {
  return createElection({ name, backend, ...patient, ...options });
}

const connect = (token?: string): KubernetesApi =>
  apiServer(token === undefined ? server.access : { ...server.access, token });

async function leadAndEnd(election: Election): Promise<bigint> {
  const term = await election.campaign({ wait: '2m' });
  await term[Symbol.asyncDispose]();
  await election.close();
  return term.token;
}

describe.concurrent('rights', () => {
  test('that are missing end a campaign with the verb and where to get it', async () => {
    for (const [verb, verbs] of [
      ['get', []],
      ['create', ['get']],
      ['update', ['get', 'create', 'watch']],
    ] as const) {
      const { token } = account({ verbs });
      const name = `without-${verb}`;
      if (verb === 'update') await leadAndEnd(open(name, kubernetes(connect())));
      const election = open(name, kubernetes(connect(token)));
      const error = await election.campaign().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect((error as Error).message).toContain(`refused to ${verb} a Lease (403)`);
      expect((error as Error).message).toContain(`needs the verb "${verb}" on leases`);
      expect((error as Error).message).toContain('incumbent schema kubernetes');
      await election.close();
    }
  });

  test('to watch that are missing make everybody poll, and are told of once', async () => {
    const { token, user } = account({ verbs: ['get', 'create', 'update'] });
    const name = 'without-watch';
    const backend = kubernetes(connect(token));
    const [a, b] = [open(name, backend), open(name, backend)];
    const term = await a.campaign();
    const following = b.campaign();
    const count = (verb: string) =>
      server.requests.filter((each) => each.verb === verb && each.user === user).length;
    await waitFor('it polls', async () => count('get') > 10);
    expect(count('watch')).toBe(1);
    await term[Symbol.asyncDispose]();
    const next = await following;
    expect(next.token).toBe(2n);
    await next[Symbol.asyncDispose]();
    await Promise.all([a.close(), b.close()]);
  });

  test('for one Lease by its name are enough, with creating it', async () => {
    const name = 'by-name';
    const { token } = account(
      { verbs: ['get', 'update', 'watch'], names: [name] },
      { verbs: ['create'] },
    );
    expect(await leadAndEnd(open(name, kubernetes(connect(token))))).toBe(1n);
    const other = open('another-name', kubernetes(connect(token)));
    await expect(other.campaign()).rejects.toThrow(StoreUnsuitableError);
    await other.close();
  });

  test('that are taken away in mid-term are waited for', async () => {
    const name = 'taken-away';
    const { token, user } = account(all);
    const election = open(name, kubernetes(connect(token)));
    const term = await election.campaign();
    server.accounts.allow(user);
    await waitFor('a confirmation is refused', async () => term.state === 'uncertain');
    server.accounts.allow(user, all);
    await waitFor('it is confirmed again', async () => term.state === 'leading');
    await term[Symbol.asyncDispose]();
    await election.close();
  });

  test('can be asked for without using them', async () => {
    const { token } = account({ verbs: ['get', 'update'], names: ['x'] });
    expect(await missingRights(connect(token), { leaseName: 'x' })).toEqual(['create', 'watch']);
    expect(await missingRights(connect(token))).toEqual(['get', 'create', 'update', 'watch']);
    expect(await missingRights(connect())).toEqual([]);
    await expect(missingRights(connect('unknown'))).rejects.toThrow(StoreUnsuitableError);
  });
});

describe.concurrent('who we are', () => {
  test('a token that nobody knows ends a campaign', async () => {
    const election = open('unknown-token', kubernetes(connect('unknown')));
    await expect(election.campaign()).rejects.toThrow('does not know us (401)');
    await election.close();
  });

  test('a token that is replaced is read again, in a Pod too', async () => {
    const path = join(directory, 'pod');
    await mkdir(path);
    const { token: first, user } = account(all);
    const replace = async (token: string) => {
      await writeFile(join(path, 'next'), `${token}\n`);
      await rename(join(path, 'next'), join(path, 'token'));
    };
    await replace(first);
    await writeFile(join(path, 'ca.crt'), server.certificates?.ca.text ?? '');
    await writeFile(join(path, 'namespace'), 'other');
    const api = inCluster({
      directory: path,
      env: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(server.port) },
    });
    const election = open('rotated', kubernetes(api));
    const term = await election.campaign();
    expect(server.registry.find('other', 'rotated')).toBeDefined();
    // The old one is refused before the new one is there: that is trouble, and passes.
    server.accounts.removeToken(first);
    await waitFor('a confirmation is refused', async () => term.state === 'uncertain');
    server.accounts.addToken('the-next', user);
    await replace('the-next');
    await waitFor('it is confirmed again', async () => term.state === 'leading');
    // Replaced in time, nothing is noticed.
    server.accounts.addToken('the-third', user);
    await replace('the-third');
    server.accounts.removeToken('the-next');
    await term.proclaim({ metadata: { as: 'third' } });
    expect(term.state).toBe('leading');
    await term[Symbol.asyncDispose]();
    await election.close();
  });

  test('a client certificate is enough', async () => {
    server.accounts.allow('client', all);
    const { ca, client } = server.certificates ?? never();
    const api = apiServer({
      url: server.url,
      ca: ca.text,
      cert: client.certificate.text,
      key: client.key.text,
    });
    expect(await leadAndEnd(open('certificate', kubernetes(api)))).toBe(1n);
  });

  test('a KubeConfig of @kubernetes/client-node speaks for itself', async () => {
    const config = new KubeConfig();
    const { url, token, ca = '' } = server.access;
    config.loadFromOptions({
      clusters: [{ name: 'c', server: url, caData: Buffer.from(ca).toString('base64') }],
      users: [{ name: 'u', token }],
      contexts: [{ name: 'x', cluster: 'c', user: 'u', namespace: 'other' }],
      currentContext: 'x',
    });
    const backend = kubernetes(config);
    expect(backend.description).toBe(`Leases in the namespace "other" of ${url}`);
    expect(await leadAndEnd(open('by-config', backend))).toBe(1n);
    expect(server.registry.find('other', 'by-config')).toBeDefined();
  });

  test('a kubeconfig file with a credential plugin has it run, until it is refused', async () => {
    const { user } = account(all);
    const calls = join(directory, 'calls');
    const plugin = join(directory, 'plugin.mjs');
    await writeFile(
      plugin,
      `#!${process.execPath}
import { appendFileSync, readFileSync } from 'node:fs';
appendFileSync(${JSON.stringify(calls)}, 'x');
const { apiVersion } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
const token = process.env.PREFIX + readFileSync(${JSON.stringify(calls)}, 'utf8').length;
console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token } }));
`,
    );
    await chmod(plugin, 0o755);
    const config = (command: string) => ({
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      clusters: [
        {
          name: 'c',
          cluster: {
            server: server.url,
            'certificate-authority-data': Buffer.from(server.access.ca ?? '').toString('base64'),
          },
        },
      ],
      users: [
        {
          name: 'u',
          user: {
            exec: {
              apiVersion: 'client.authentication.k8s.io/v1',
              command,
              env: [{ name: 'PREFIX', value: 'plugin-' }],
            },
          },
        },
      ],
    });
    server.accounts.addToken('plugin-1', user);
    const api = fromKubeConfig(config('./plugin.mjs'), { directory });
    expect(await missingRights(api)).toEqual([]);
    server.accounts.removeToken('plugin-1');
    server.accounts.addToken('plugin-2', user);
    expect(await missingRights(api)).toEqual([]);
    const missing = open('no-plugin', kubernetes(fromKubeConfig(config('./none'), { directory })));
    await expect(missing.campaign()).rejects.toThrow('is not installed');
    await missing.close();
  });
});

describe.concurrent('the way to the server', () => {
  test('a certificate that is not trusted ends a campaign with the way out', async () => {
    const { url, token } = server.access;
    const election = open('no-ca', kubernetes(apiServer({ url, token })));
    await expect(election.campaign()).rejects.toThrow(/is not trusted .*give the cluster's own/);
    await election.close();
    const named = apiServer({ ...server.access, serverName: 'another.example.com' });
    const other = open('no-ca', kubernetes(named));
    await expect(other.campaign()).rejects.toThrow('ERR_TLS_CERT_ALTNAME_INVALID');
    await other.close();
    const insecure = apiServer({ url, token, insecure: true });
    expect(await leadAndEnd(open('insecure', kubernetes(insecure)))).toBe(1n);
  });

  test('a foreign page is no API server', async () => {
    await using proxy = await FakeApiServer.start({ plain: true });
    const election = open('page', kubernetes(apiServer(proxy.access)));
    const page = { kind: 'answer', headers: { 'content-type': 'text/html' } } as const;
    proxy.faults.add({ action: { ...page, status: 200, body: '<h1>Log in</h1>' } });
    await expect(election.campaign()).rejects.toThrow('answered 200 and no JSON of an API server');
    proxy.faults.add({ action: { ...page, status: 502, body: '<h1>Bad gateway</h1>' } });
    // That passes.
    expect(await leadAndEnd(election)).toBe(1n);
  });

  test('a namespace that is not there, or is no more, ends a campaign', async () => {
    const election = open('nowhere', kubernetes(connect(), { namespace: 'nowhere' }));
    await expect(election.campaign()).rejects.toThrow('the namespace "nowhere" is not there (404)');
    await election.close();
  });

  test('a server that is throttled says for how long, and is tried again', async () => {
    const { token } = account(all);
    const election = open('throttled', kubernetes(connect(token)));
    server.faults.add({
      name: 'throttled',
      verbs: ['get'],
      action: {
        kind: 'answer',
        status: 429,
        headers: { 'retry-after': '1', 'content-type': 'application/json' },
        body: JSON.stringify(new StatusError(429, 'TooManyRequests', 'please try again later')),
      },
    });
    const error = await election.leader().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect((error as Error).message).toContain('please try again later; it asks to wait 1 s');
    expect(await leadAndEnd(election)).toBe(1n);
  });

  test('calls on a closed connection open another one', async () => {
    const api = connect();
    const backend = kubernetes(api);
    await leadAndEnd(open('closed-connection', backend));
    api.close();
    expect(await leadAndEnd(open('closed-connection', backend))).toBe(2n);
  });
});

describe.concurrent('outcomes that nobody told', () => {
  for (const verb of ['create', 'update'] as const) {
    test(`a win whose answer was lost (${verb}) is found`, async () => {
      const name = `lost-win-${verb}`;
      if (verb === 'update') await leadAndEnd(open(name, kubernetes(connect())));
      server.faults.add({ name, verbs: [verb], action: { kind: 'drop-reply' } });
      const election = open(name, kubernetes(connect()));
      const term = await election.campaign();
      expect(term.token).toBe(verb === 'create' ? 1n : 2n);
      await term[Symbol.asyncDispose]();
      await election.close();
    });
  }

  test('confirmations whose answers are lost extend the term, and a lost release is one', async () => {
    const name = 'lost-answers';
    const a = open(name, kubernetes(connect()));
    const b = open(name, kubernetes(connect()));
    const term = await a.campaign();
    const lost = () => server.requests.filter((each) => each.name === name && each.status === 0);
    server.faults.add({ name, verbs: ['update'], times: 3, action: { kind: 'drop-reply' } });
    await waitFor('three answers are lost', async () => lost().length >= 3);
    await waitFor('it is confirmed again', async () => term.state === 'leading');
    server.faults.add({ name, verbs: ['update'], action: { kind: 'drop-reply' } });
    await term[Symbol.asyncDispose]();
    expect(lost()).toHaveLength(4);
    const next = await b.campaign({ wait: '2m' });
    expect([next.token, next.predecessor?.clean]).toEqual([2n, true]);
    await next[Symbol.asyncDispose]();
    await Promise.all([a.close(), b.close()]);
  });

  test('a confirmation that is applied after its leader gave up makes no second one', async () => {
    const name = 'late-confirmation';
    // A busy machine has to win and confirm it in time.
    const short = { lease: '6s', renewEvery: '1s' };
    const a = open(name, kubernetes(connect()), short);
    const b = open(name, kubernetes(connect()), short);
    const first = await a.campaign();
    const waiting = b.campaign({ wait: '30s' });
    let apply: () => void = () => {};
    const until = new Promise<void>((resolve) => {
      apply = resolve;
    });
    // All requests of the leader from now on arrive when it is too late.
    const action = { kind: 'hold', until } as const;
    const end = server.faults.add({ name, verbs: ['update'], times: 100, action });
    await once(first.signal, 'abort');
    await waitFor('belief is over', async () => !first.isLeading());
    end();
    apply();
    const second = await waiting;
    expect(first.isLeading()).toBe(false);
    expect(second.token).toBe(2n);
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    await Promise.all([a.close(), b.close()]);
  });

  test('a confirmation that arrives when its Lease was deleted does not bring it back', async () => {
    const name = 'late-and-deleted';
    const election = open(name, kubernetes(connect()));
    const term = await election.campaign();
    let apply: () => void = () => {};
    const until = new Promise<void>((resolve) => {
      apply = resolve;
    });
    // On its way while an operator deletes the Lease.
    let isHeld = false;
    const action = {
      kind: 'hold',
      get until() {
        isHeld = true;
        return until;
      },
    } as const;
    server.faults.add({ name, verbs: ['update'], action });
    await waitFor('a confirmation is on its way', async () => isHeld);
    server.registry.delete('default', name);
    apply();
    await once(term.signal, 'abort');
    await term[Symbol.asyncDispose]();
    expect((await term.ended).reason).toBe('record-gone');
    const answers = server.requests.filter((one) => one.name === name && one.verb === 'update');
    expect(answers.map(({ status }) => status)).toContain(409);
    expect(answers.map(({ status }) => status)).not.toContain(201);
    expect(server.registry.find('default', name)).toBeUndefined();
    await election.close();
  });

  test('a server that tells no uid is refused, for a late write could bring a Lease back', async () => {
    const name = 'without-uid';
    const real = connect();
    const election = open(
      name,
      kubernetes({
        ...{ url: real.url, namespace: real.namespace, close: () => real.close() },
        watch: (request) => real.watch(request),
        async request(request) {
          const response = await real.request(request);
          const { metadata } = response.body as { metadata?: { uid?: string } };
          if (metadata !== undefined) delete metadata.uid;
          return response;
        },
      }),
    );
    await expect(election.campaign()).rejects.toThrow(StoreUnsuitableError);
    await expect(election.campaign()).rejects.toThrow(
      `the Lease default/${name} has no metadata.uid`,
    );
    await election.close();
  });
});

describe.concurrent('actions of others on a Lease', () => {
  test('a damaged record is left as it is and named', async () => {
    const name = 'damaged';
    await leadAndEnd(open(name, kubernetes(connect())));
    const annotations = { [recordAnnotation]: 'oops' };
    const damaged = server.registry.patch('default', name, { metadata: { annotations } });
    const election = open(name, kubernetes(connect()));
    await expect(election.campaign()).rejects.toThrow(RecordDamagedError);
    await expect(election.campaign()).rejects.toThrow(`the Lease default/${name}`);
    expect(server.registry.get('default', name)).toEqual(damaged);
    await election.close();
  });

  test('labels, owners and annotations that others set stay, and cost the leader nothing', async () => {
    const name = 'labelled';
    const election = open(name, kubernetes(connect()));
    const term = await election.campaign();
    const metadata = { labels: { app: 'x' }, ownerReferences: [{ name: 'y' }] };
    server.registry.patch('default', name, { metadata });
    server.registry.patch('default', name, {
      metadata: { annotations: { note: 'z' } },
      spec: { strategy: 'OldestEmulationVersion', preferredHolder: 'w' },
    });
    await term.proclaim({ metadata: { still: 'here' } });
    expect(server.registry.get('default', name)).toMatchObject({
      metadata: { ...metadata, annotations: { note: 'z', [tokenAnnotation]: '1' } },
      spec: { strategy: 'OldestEmulationVersion', preferredHolder: 'w' },
    });
    await term[Symbol.asyncDispose]();
    await election.close();
  });

  test('a Lease that is deleted ends the term, and the token does not fall for a candidate that knew it', async () => {
    const name = 'deleted';
    const backend = kubernetes(connect());
    // A candidate that sees a record vanish waits for a leader that may still believe.
    const short = { lease: '10s' };
    await leadAndEnd(open(name, backend, short));
    const election = open(name, backend, short);
    const term = await election.campaign();
    server.registry.delete('default', name);
    await once(term.signal, 'abort');
    await term[Symbol.asyncDispose]();
    expect((await term.ended).reason).toBe('record-gone');
    const again = await election.campaign();
    expect(again.token).toBe(3n);
    await again[Symbol.asyncDispose]();
    await election.close();
  });

  test('a Go controller that leads gets no request, because it reads none', async () => {
    const name = 'foreign';
    server.registry.create('default', {
      metadata: { name },
      spec: { holderIdentity: 'go-1', leaseDurationSeconds: 60, leaseTransitions: 3 },
    });
    const operator = open(name, kubernetes(connect()));
    for (const ask of [
      () => operator.vacate(),
      () => operator.vacate({ force: true }),
      () => operator.transfer('x'),
    ]) {
      const error = await ask().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RefusedError);
      expect((error as Error).message).toContain(
        '"go-1" leads, which is no candidate of incumbent',
      );
    }
    await operator.drain('x', new Date(Date.now() + 60_000));
    expect(await operator.leader()).toMatchObject({
      state: 'led',
      token: 4n,
      leader: { id: 'go-1' },
    });
    expect(server.registry.get('default', name).spec['holderIdentity']).toBe('go-1');
    await operator.close();
  });
});

describe.concurrent('the watch', () => {
  test('carries the Lease: followers read once per lease, however often is confirmed', async () => {
    await using own = await FakeApiServer.start({ plain: true });
    const name = 'quiet';
    own.accounts.addToken('follower', 'follower');
    own.accounts.allow('follower', all);
    const leader = open(name, kubernetes(apiServer(own.access)), { lease: '10s' });
    const followers = kubernetes(apiServer({ ...own.access, token: 'follower' }));
    const term = await leader.campaign();
    const follower = open(name, followers, { lease: '10s' });
    const following = follower.campaign();
    await waitFor('it is watched', async () => own.watchCount >= 2);
    const count = () =>
      own.requests.filter((each) => each.user === 'follower' && each.verb === 'get').length;
    const before = count();
    const confirmed = own.count('update');
    await waitFor('it is confirmed', async () => own.count('update') >= confirmed + 20);
    expect(count() - before).toBeLessThanOrEqual(6);
    await term[Symbol.asyncDispose]();
    const next = await following;
    await next[Symbol.asyncDispose]();
    await Promise.all([leader.close(), follower.close()]);
    await waitFor('nothing is watched any more', async () => own.watchCount === 0);
  });

  test('of many elections is one stream, which tells each its own news', async () => {
    await using own = await FakeApiServer.start({ plain: true });
    const backend = kubernetes(apiServer(own.access));
    const many = Array.from({ length: 100 }, (_, index) => `job-${index}`);
    const leaders = many.map((name) => open(name, backend, rare));
    const terms = await Promise.all(leaders.map((election) => election.campaign()));
    const others = kubernetes(apiServer(own.access));
    const followers = many.map((name) => open(name, others, rare));
    const following = followers.map((election) => election.campaign());
    // One for each backend.
    await waitFor('two streams are left', async () => own.watchCount === 2);
    for (const term of terms) await term[Symbol.asyncDispose]();
    for (const campaign of following) {
      const term = await campaign;
      expect(term.token).toBe(2n);
      await term[Symbol.asyncDispose]();
    }
    await Promise.all([...leaders, ...followers].map((election) => election.close()));
  });

  test('is one for each of many elections where the account may not have one for all', async () => {
    await using own = await FakeApiServer.start({ plain: true });
    const many = Array.from({ length: 12 }, (_, index) => `named-${index}`);
    own.accounts.addToken('named', 'named');
    own.accounts.allow(
      'named',
      { verbs: ['get', 'update', 'watch'], names: many },
      { verbs: ['create'] },
    );
    const access = { ...own.access, token: 'named' };
    const [a, b] = [kubernetes(apiServer(access)), kubernetes(apiServer(access))];
    const leaders = many.map((name) => open(name, a, { ...rare, pollEvery: '1s' }));
    const terms = await Promise.all(leaders.map((election) => election.campaign()));
    const followers = many.map((name) => open(name, b, { ...rare, pollEvery: '1s' }));
    const following = followers.map((election) => election.campaign());
    await waitFor('each is watched by both', async () => own.watchCount === 2 * many.length);
    for (const term of terms) await term[Symbol.asyncDispose]();
    for (const campaign of following) await (await campaign)[Symbol.asyncDispose]();
    await Promise.all([...leaders, ...followers].map((election) => election.close()));
  });

  test('is opened again after it has ended, in order or not, or was too late', async () => {
    await using own = await FakeApiServer.start({ plain: true, bookmarkEveryMs: 50 });
    const [a, b] = [kubernetes(apiServer(own.access)), kubernetes(apiServer(own.access))];
    const leader = open('again', a, rare);
    const follower = open('again', b, rare);
    let term = await leader.campaign();
    const endings: readonly (() => unknown)[] = [
      () => own.endWatches(),
      () => own.endWatches(new StatusError(410, 'Expired', 'too old resource version')),
      () => own.endWatches(new StatusError(500, 'InternalError', 'etcd has no leader')),
      async () => {
        await own.stop();
        await own.listen();
      },
    ];
    for (const end of endings) {
      const following = follower.campaign();
      await waitFor('both watch', async () => own.watchCount === 2);
      await end();
      await waitFor('both watch again', async () => own.watchCount === 2);
      // And it works: a release is followed long before a poll would find it.
      await term[Symbol.asyncDispose]();
      const next = await following;
      await next[Symbol.asyncDispose]();
      term = await leader.campaign();
    }
    await term[Symbol.asyncDispose]();
    await Promise.all([leader.close(), follower.close()]);
  });

  test('that a proxy ends at once, each time, does not make candidates read for ever', async () => {
    await using own = await FakeApiServer.start({ plain: true });
    const name = 'no-streams';
    own.faults.add({
      verbs: ['watch'],
      times: 10_000,
      action: {
        kind: 'answer',
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: '',
      },
    });
    const backend = kubernetes(apiServer(own.access));
    const timing = { renewEvery: '1s', pollEvery: '1s' };
    const [a, b] = [open(name, backend, timing), open(name, backend, timing)];
    const term = await a.campaign();
    const following = b.campaign();
    await sleep(3_000);
    // Polls of one follower each second, and confirmations.
    expect(own.requests.length).toBeLessThan(40);
    await term[Symbol.asyncDispose]();
    const next = await following;
    await next[Symbol.asyncDispose]();
    await Promise.all([a.close(), b.close()]);
  });
});

describe.concurrent('an object that is written with the token', () => {
  const at = (name: string) => `/apis/coordination.k8s.io/v1/namespaces/default/leases/${name}`;
  const label = (value: string) => (object: KubernetesObject) => ({
    ...object,
    metadata: { ...object.metadata, labels: { by: value } },
  });

  test('is refused to an older term once a newer one has written it', async () => {
    const name = 'guarded';
    server.registry.create('default', { metadata: { name, labels: { by: 'nobody' } } });
    const api = connect();
    await withToken(api, 7n, at(name), label('seven'));
    await withToken(api, 7n, at(name), label('seven again'));
    await withToken(api, 9n, at(name), label('nine'));
    await expect(withToken(api, 7n, at(name), label('late'))).rejects.toThrow(RefusedError);
    await expect(withToken(api, 8n, at(name), label('late'))).rejects.toThrow('by term 9');
    expect(server.registry.get('default', name).metadata).toMatchObject({
      labels: { by: 'nine' },
      annotations: { [tokenAnnotation]: '9' },
    });
  });

  test('is written by one of many at a time, and a late write meets the newer token', async () => {
    const name = 'contended';
    server.registry.create('default', { metadata: { name } });
    const api = connect();
    let late: Promise<unknown> | undefined;
    // Between the old leader's look and its write, the new one writes.
    await withToken(api, 1n, at(name), (object) => {
      late ??= withToken(api, 2n, at(name), label('two'));
      return label('one')(object);
    }).catch(() => {});
    await late;
    const writes = Array.from({ length: 8 }, (_, index) =>
      withToken(api, BigInt(index + 3), at(name), label(`${index}`)).catch(
        (error: unknown) => error,
      ),
    );
    for (const result of await Promise.all(writes)) {
      if (result instanceof Error) expect(result).toBeInstanceOf(RefusedError);
    }
    expect(server.registry.get('default', name).metadata.annotations).toEqual({
      [tokenAnnotation]: '10',
    });
  });

  test('is not made again by an older term when it was deleted meanwhile', async () => {
    const name = 'deleted-meanwhile';
    server.registry.create('default', { metadata: { name } });
    const api = connect();
    await withToken(api, 7n, at(name), label('seven'));
    const late = withToken(api, 7n, at(name), () => {
      // The newer term has written it, and ends it for good.
      server.registry.delete('default', name);
      return { metadata: { name, labels: { by: 'seven, late' } } };
    });
    await expect(late).rejects.toThrow(`leases/${name} (404)`);
    expect(server.registry.find('default', name)).toBeUndefined();
  });

  test('that is not there, or not ours to write, is an error with its path', async () => {
    const { token } = account({ verbs: ['get'] });
    server.registry.create('default', { metadata: { name: 'read-only' } });
    await expect(withToken(connect(), 1n, at('none'), label('x'))).rejects.toThrow('(404)');
    const written = withToken(connect(token), 1n, at('read-only'), label('x'));
    await expect(written).rejects.toThrow(StoreUnsuitableError);
    await expect(written).rejects.toThrow('leases/read-only (403)');
  });
});

function never(): never {
  throw new Error('no certificates');
}
