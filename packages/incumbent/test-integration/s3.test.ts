/** Elections on objects of S3 when something is wrong: bucket, rights, TLS, records, conditions, clocks. */
import { createServer } from 'node:http';
import { Agent } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { S3Action, S3Credentials } from '@incumbent/servers';
import { cephDialect, FakeS3, waitFor } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { S3Options } from '../src/backends/s3/index.ts';
import { s3 } from '../src/backends/s3/index.ts';
import type { Backend, Election, ElectionOptions } from '../src/index.ts';
import {
  createElection,
  RecordDamagedError,
  RecordTooNewError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../src/index.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';
import { bucketOptions, s3Client, s3Stores } from './support/s3.ts';
import { troubleErrors } from './support/trouble-errors.ts';

/** No machine is so slow that a term ends by it. For tests in which none may run out. */
const patient = {
  lease: '60s',
  renewEvery: '300ms',
  pollEvery: '300ms',
  retryBackoff: '100ms',
} as const;

let server: FakeS3;

beforeAll(async () => {
  server = await FakeS3.start();
});

afterAll(() => server?.close());

let names = 0;

/** A new account with no other rights. */
function account(...actions: S3Action[]): S3Credentials {
  names += 1;
  const credentials = { accessKeyId: `USER${names}`, secretAccessKey: `secret-${names}` };
  server.allow(credentials, actions);
  return credentials;
}

function backendFor(credentials?: S3Credentials, options: Partial<S3Options> = {}): Backend {
  return s3(s3Client(server, credentials), { ...bucketOptions, ...options });
}

function open(
  backend: Backend,
  options: Partial<ElectionOptions<unknown>> = {},
  name = `election-${++names}`,
): Election {
  return createElection({ name, backend, ...patient, ...options });
}

async function leadAndEnd(election: Election): Promise<bigint> {
  const term = await election.campaign({ wait: '2m' });
  await term[Symbol.asyncDispose]();
  await election.close();
  return term.token;
}

/** Why no candidate can be elected. */
async function failure(backend: Backend, name?: string): Promise<Error> {
  const election = open(backend, {}, name);
  try {
    const error = await election.campaign({ wait: '20s' }).then(
      () => new Error('it was elected'),
      (thrown: unknown) => thrown as Error,
    );
    return error;
  } finally {
    await election.close();
  }
}

describe.concurrent('missing rights, and things that are not there', () => {
  test('a bucket that is not there ends a campaign with its name', async () => {
    const error = await failure(backendFor(undefined, { bucket: 'nobodys' }));
    expect(error).toBeInstanceOf(StoreUnsuitableError);
    expect(error.message).toContain('the bucket "nobodys": NoSuchBucket (404)');
    expect(error.message).toContain('make the bucket, or name another one');
  });

  const everything = ['s3:GetObject', 's3:PutObject', 's3:ListBucket'] as const;

  test('the rights that docs/stores/s3.md lists are enough', async () => {
    const credentials = account(...everything);
    const name = 'with-rights';
    expect(await leadAndEnd(open(backendFor(credentials), {}, name))).toBe(1n);
    expect(await leadAndEnd(open(backendFor(credentials), {}, name))).toBe(2n);
  });

  test.each(everything)('without %s nobody is elected, and the error names it', async (missing) => {
    const credentials = account(...everything.filter((each) => each !== missing));
    const error = await failure(backendFor(credentials));
    expect(error).toBeInstanceOf(StoreUnsuitableError);
    expect(error.message).toContain('AccessDenied (403)');
    expect(error.message).toContain(missing);
  });

  test.each([
    [{ accessKeyId: 'NOBODY', secretAccessKey: 'x' }, 'InvalidAccessKeyId'],
    [{ accessKeyId: 'OWNER', secretAccessKey: 'wrong' }, 'SignatureDoesNotMatch'],
  ])('credentials %j are refused as such', async (credentials, code) => {
    const error = await failure(backendFor(credentials));
    expect(error).toBeInstanceOf(StoreUnsuitableError);
    expect(error.message).toContain(`${code} (403)`);
    expect(error.message).toContain('look at the credentials and the region of the client');
  });

  test('rights that were there before are waited for', async (context) => {
    const credentials = account(...everything);
    const name = 'rights-come-back';
    const troubles = troubleErrors(name, context);
    const leader = open(backendFor(credentials), {}, name);
    const term = await leader.campaign();
    server.allow(credentials, []);
    await waitFor('it is told', async () => troubles.length > 1);
    server.allow(credentials, everything);
    const before = term.remaining();
    await waitFor('it renews again', async () => term.remaining() > before);
    expect(troubles[0]).toBeInstanceOf(StoreUnavailableError);
    expect(String(troubles[0])).toContain('(it was allowed before)');
    await term[Symbol.asyncDispose]();
    await leader.close();
  });

  test('an endpoint that is not up yet is waited for', async (context) => {
    const late = await FakeS3.start();
    await late.stop();
    const troubles = troubleErrors('too-early', context);
    const election = open(s3(s3Client(late), bucketOptions), {}, 'too-early');
    const token = leadAndEnd(election);
    await waitFor('it is told', async () => troubles.length > 0);
    expect(troubles[0]).toBeInstanceOf(StoreUnavailableError);
    expect(String(troubles[0])).toContain('ECONNREFUSED');
    await late.listen();
    expect(await token).toBe(1n);
    await late.close();
  });

  test('TLS where there is none, or by nobody who is trusted, is told at once', async () => {
    const speaksNone = s3Client({ url: server.url.replace('http:', 'https:') });
    await using tls = await FakeS3.start({ tls: true });
    for (const [client, code] of [
      [speaksNone, 'EPROTO'],
      [s3Client(tls), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ] as const) {
      const error = await failure(s3(client, bucketOptions));
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(error.message).toContain(code);
      expect(error.message).toContain('look at the endpoint of the client');
    }
    const { ca } = tls.certificates as NonNullable<FakeS3['certificates']>;
    const trusting = s3Client(tls, undefined, {
      requestHandler: { httpsAgent: new Agent({ ca: ca.text }) },
    });
    expect(await leadAndEnd(open(s3(trusting, bucketOptions)))).toBe(1n);
    trusting.destroy();
  });

  test('something else than S3 is no empty bucket', async () => {
    const page = { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>no</html>' };
    const name = 'behind-a-page';
    const end = server.faults.add({ name, times: 9, action: { kind: 'answer', ...page } });
    const error = await failure(backendFor(), name);
    end();
    expect(error).toBeInstanceOf(StoreUnsuitableError);
    expect(error.message).toContain('look whether the endpoint is one of S3');
    expect(server.bucket.find(name)).toBeUndefined();
  });

  test('a client without credentials or region says so', async () => {
    const none = async () => {
      throw Object.assign(new Error('Could not load credentials from any providers'), {
        name: 'CredentialsProviderError',
      });
    };
    const { url } = server;
    for (const client of [
      s3Client({ url }, undefined, { credentials: none }),
      s3Client({ url }, undefined, {
        region: async () => {
          throw new Error('Region is missing');
        },
      }),
    ]) {
      const error = await failure(s3(client, bucketOptions));
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(error.message).toContain('give the client credentials and a region');
    }
  });
});

describe.concurrent('foreign objects', () => {
  const put = (key: string, text: string | Buffer) =>
    server.bucket.put(key, Buffer.from(text), {
      writtenMs: server.nowMs,
      contentType: 'text/plain',
      checksums: {},
    });

  test.each([
    ['a text', 'hello', RecordDamagedError, 'no JSON'],
    ['nothing', '', RecordDamagedError, 'no JSON'],
    ['other JSON', '{"a":1}', RecordDamagedError, 'is not an election record'],
    ['a film', Buffer.alloc(9_000_000), RecordDamagedError, 'it has 9000000 bytes'],
    ['of a later version', '{"format":99}', RecordTooNewError, 'record format 99'],
  ])('%s is left as it is', async (what, content, kind, words) => {
    const key = `foreign ${what}`;
    const { etag } = put(key, content);
    const error = await failure(backendFor(), key);
    expect(error).toBeInstanceOf(kind);
    expect(error.message).toContain(`the object "${key}" of the bucket "elections"`);
    expect(error.message).toContain(words);
    expect(server.bucket.get(key).etag).toBe(etag);
  });

  test('the record of another election is left as it is', async () => {
    const objectName = () => 'one-for-all';
    await leadAndEnd(open(backendFor(undefined, { objectName }), {}, 'the first'));
    const error = await failure(backendFor(undefined, { objectName }), 'the second');
    expect(error).toBeInstanceOf(RecordDamagedError);
    expect(error.message).toContain('it belongs to the election "the first"');
  });

  test('an object that is deleted ends its term, and tokens go on', async () => {
    const name = 'deleted';
    const election = open(backendFor(), { lease: '3s' }, name);
    const term = await election.campaign();
    server.bucket.delete(name);
    await waitFor('the term ends', async () => term.signal.aborted);
    await term[Symbol.asyncDispose]();
    expect(await leadAndEnd(election)).toBe(2n);
    expect(String(term.signal.reason)).toContain('gone');
  });

  test('names with any characters are objects of that name', async () => {
    const name = 'a b/ü+&?#%2F=\\"\'(x)*~🦊';
    await leadAndEnd(open(backendFor(undefined, { prefix: 'e/' }), {}, name));
    expect(server.bucket.keys).toContain(`e/${name}`);
  });
});

describe.concurrent('conditions', () => {
  test.each([
    [['if-match'], 'ignores If-Match'],
    [['if-none-match'], 'ignores If-None-Match: *'],
    [['if-match', 'if-none-match'], 'ignores If-None-Match: *'],
  ] as const)('an endpoint that ignores %j elects nobody', async (ignores, words) => {
    await using bad = await FakeS3.start({ dialect: { ignores } });
    const client = s3Client(bad);
    const failures = await Promise.all(
      Array.from({ length: 4 }, () => failure(s3(client, bucketOptions))),
    );
    for (const error of failures) {
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(error.message).toContain(words);
    }
    expect(bad.bucket.keys).toEqual(['.incumbent-probe']);
    client.destroy();
  });

  test.each([
    ['AWS', {}],
    ['Ceph RGW', cephDialect],
    ['MinIO of 2025', { missing: 200 }],
    ['one that wants quotes', { tags: 'quoted' }],
  ] as const)('ten prove at the same time that %s honours them', async (_name, dialect) => {
    await using good = await FakeS3.start({ dialect });
    const clients = Array.from({ length: 10 }, () => s3Client(good));
    const tokens = await Promise.all(
      clients.map((client) => leadAndEnd(open(s3(client, bucketOptions)))),
    );
    expect(tokens).toEqual(Array.from({ length: 10 }, () => 1n));
    expect(good.unexpected).toEqual([]);
    for (const client of clients) client.destroy();
  });

  test('the proof costs four requests, once for all elections of a backend', async () => {
    await using good = await FakeS3.start();
    const client = s3Client(good);
    await leadAndEnd(open(s3(client, bucketOptions)));
    const isProof = ({ name }: { readonly name: string | undefined }) =>
      name === '.incumbent-probe';
    good.requests.length = 0;
    const backend = s3(client, bucketOptions);
    await Promise.all([open(backend), open(backend), open(backend)].map(leadAndEnd));
    const proofs = good.requests.filter(isProof);
    expect(proofs.map(({ verb, status }) => `${verb} ${status}`)).toEqual([
      'get 200',
      'put 412',
      'put 412',
      'put 200',
    ]);
    good.requests.length = 0;
    await leadAndEnd(open(s3(client, { ...bucketOptions, probe: false })));
    expect(good.requests.filter(isProof)).toEqual([]);
    client.destroy();
  });

  test('a candidate that waits for a proof that is given up makes it itself', async () => {
    await using slow = await FakeS3.start();
    const client = s3Client(slow);
    const backend = s3(client, bucketOptions);
    slow.faults.add({ name: '.incumbent-probe', action: { kind: 'hang' } });
    const options = { operationTimeout: '400ms' } as const;
    const elections = [open(backend, options), open(backend, options)];
    expect(await Promise.all(elections.map(leadAndEnd))).toEqual([1n, 1n]);
    client.destroy();
  });

  test('quotes that are not wanted are told when they were said to be', async () => {
    await using ceph = await FakeS3.start({ dialect: cephDialect });
    const client = s3Client(ceph);
    const error = await failure(s3(client, { ...bucketOptions, etagQuotes: 'quoted' }));
    expect(error).toBeInstanceOf(StoreUnsuitableError);
    expect(error.message).toContain('refuses If-Match with the right ETag (quoted)');
    expect(error.message).toContain('leave out etagQuotes');
    const backend = s3(client, { ...bucketOptions, etagQuotes: 'unquoted' });
    expect(await leadAndEnd(open(backend))).toBe(1n);
    client.destroy();
  });

  test('an endpoint that knows no conditional writes says so', async () => {
    await using old = await FakeS3.start();
    const body =
      '<Error><Code>NotImplemented</Code><Message>A header you provided</Message></Error>';
    old.faults.add({ verbs: ['put'], times: 9, action: { kind: 'answer', status: 501, body } });
    const error = await failure(s3(s3Client(old), bucketOptions));
    expect(error).toBeInstanceOf(StoreUnsuitableError);
    expect(error.message).toContain('this endpoint cannot do what elections need');
  });
});

describe.concurrent('repetitions of the SDK', () => {
  test('a write that meets its own success is found to be our own', async () => {
    const name = 'meets-itself';
    const election = open(backendFor(), {}, name);
    await election.init();
    server.faults.add({ name, verbs: ['put'], action: { kind: 'drop-reply' } });
    const term = await election.campaign();
    expect(term.token).toBe(1n);
    const answers = server.requests
      .filter((each) => each.name === name)
      .map(({ verb, status }) => `${verb} ${status}`);
    // Applied without an answer, repeated by the SDK and refused, and read back.
    expect(answers.slice(0, 4)).toEqual(['get 404', 'put 0', 'put 412', 'get 200']);
    server.faults.add({ name, verbs: ['put'], action: { kind: 'drop-reply' } });
    const before = server.count('put');
    await waitFor('it renews', async () => server.count('put') > before + 2);
    expect(term.isLeading()).toBe(true);
    await term[Symbol.asyncDispose]();
    await election.close();
  });

  test('nothing is repeated of a write that was given up', async () => {
    await using slow = await FakeS3.start();
    const client = s3Client(slow);
    const store = s3Stores(client, 60_000)('given-up');
    await store.init?.(new AbortController().signal);
    const { version } = await store.read(new AbortController().signal);
    slow.faults.add({ name: 'given-up', verbs: ['put'], times: 9, action: { kind: 'hang' } });
    const stop = new AbortController();
    const swap = store.swap(version, vacantRecord('given-up', 'n'), stop.signal);
    await waitFor('it is sent', async () => slow.openRequests > 0);
    stop.abort(new Error('enough'));
    await expect(swap).rejects.toThrow();
    await waitFor('it is gone', async () => slow.openRequests === 0);
    const other = await store.read(new AbortController().signal);
    expect(other.record).toBeUndefined();
    expect(
      slow.requests.filter(({ name, verb }) => name === 'given-up' && verb === 'put'),
    ).toHaveLength(1);
    client.destroy();
  });

  test('an endpoint that asks for less is waited for, and told of', async (context) => {
    const name = 'slow-down';
    const troubles = troubleErrors(name, context);
    const client = s3Client(server, undefined, { maxAttempts: 1 });
    const election = open(s3(client, bucketOptions), {}, name);
    const term = await election.campaign();
    const body =
      '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>';
    server.faults.add({ name, times: 3, action: { kind: 'answer', status: 503, body } });
    await waitFor('it is told', async () => troubles.length > 0);
    const before = term.remaining();
    await waitFor('it renews again', async () => term.remaining() > before);
    expect(troubles[0]).toBeInstanceOf(StoreUnavailableError);
    expect(String(troubles[0])).toContain('SlowDown (503): Please reduce your request rate');
    await term[Symbol.asyncDispose]();
    await election.close();
    client.destroy();
  });

  test('409 is a write of another client under way', async () => {
    const name = 'conflict';
    const election = open(backendFor(), {}, name);
    const term = await election.campaign();
    const body = '<Error><Code>ConditionalRequestConflict</Code><Message>busy</Message></Error>';
    server.faults.add({ name, verbs: ['put'], action: { kind: 'answer', status: 409, body } });
    const conflicts = () => server.requests.filter((each) => each.status === 409).length;
    await waitFor('it is refused', async () => conflicts() > 0);
    const before = term.remaining();
    await waitFor('it renews again', async () => term.remaining() > before);
    await term[Symbol.asyncDispose]();
    await election.close();
  });

  test('a client that was destroyed makes new connections', async () => {
    const client = s3Client(server);
    const election = open(s3(client, bucketOptions));
    const term = await election.campaign();
    client.destroy();
    const before = server.count('put');
    await waitFor('it renews', async () => server.count('put') > before + 2);
    expect(term.isLeading()).toBe(true);
    await term[Symbol.asyncDispose]();
    await election.close();
  });
});

describe.concurrent('an answer that is not complete', () => {
  test.each([200, 404, 503])(
    'of %i, cut or standing still, is none, and leaves no connection',
    async (status) => {
      let begun = 0;
      let cuts = true;
      const connections = new Set<Socket>();
      const endpoint = createServer((request, response) => {
        request.resume();
        response.writeHead(status, { 'content-length': 1_000, etag: '"x"' });
        response.write('<?xml version="1.0"?><Err', () => {
          begun += 1;
          if (cuts) setImmediate(() => request.socket.resetAndDestroy());
        });
      });
      endpoint.on('connection', (socket: Socket) => {
        connections.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => connections.delete(socket));
      });
      await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
      const { port } = endpoint.address() as AddressInfo;
      const client = s3Client({ url: `http://127.0.0.1:${port}` }, undefined, { maxAttempts: 1 });
      const store = s3Stores(client, 60_000)('x');
      await expect(store.read(new AbortController().signal)).rejects.toThrow(StoreUnavailableError);
      cuts = false;
      const stop = new AbortController();
      const reading = store.read(stop.signal);
      await waitFor('it has begun', async () => begun > 1);
      stop.abort(new Error('too slow'));
      await expect(reading).rejects.toThrow();
      await waitFor('no connection is left', async () => connections.size === 0);
      client.destroy();
      await new Promise((resolve) => endpoint.close(resolve));
    },
  );
});

describe.concurrent('what it costs', () => {
  test('a leader only writes, and a waiting candidate looks twice a lease', async () => {
    await using quiet = await FakeS3.start();
    const client = s3Client(quiet);
    const name = 'counted';
    const options = { name, backend: s3(client, bucketOptions), lease: '3s' } as const;
    const [leader, follower] = [createElection(options), createElection(options)];
    const term = await leader.campaign();
    const count = (kind: string) =>
      quiet.requests.filter((each) => each.name === name && each.verb === kind).length;
    quiet.requests.length = 0;
    const startMs = performance.now();
    const stop = new AbortController();
    const waiting = follower.campaign({ signal: stop.signal });
    await waitFor('it has renewed for some leases', async () => count('put') > 12);
    const leases = (performance.now() - startMs) / 3_000;
    expect(count('get')).toBeGreaterThan(0);
    expect(count('get')).toBeLessThanOrEqual(2 * leases + 1);
    expect(count('put')).toBeLessThanOrEqual(5 * leases + 1);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await term[Symbol.asyncDispose]();
    await Promise.all([leader.close(), follower.close()]);
    client.destroy();
  });
});
