/** The stand-in against the rules that a real API server follows. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Fault } from '../src/index.ts';
import { adminToken, FakeApiServer, StatusError } from '../src/index.ts';

const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

let server: FakeApiServer;

beforeEach(async () => {
  server = await FakeApiServer.start({ plain: true, bookmarkEveryMs: 30 });
});

afterEach(() => server.close());

interface Answer {
  readonly status: number;
  readonly body: {
    readonly kind: string;
    readonly reason?: string;
    readonly message?: string;
    readonly metadata: Record<string, unknown>;
    readonly spec: Record<string, unknown>;
    readonly items?: readonly unknown[];
  };
}

async function call(
  method: string,
  where: string,
  body?: object,
  { token = adminToken, type = 'application/json' } = {},
): Promise<Answer> {
  const response = await fetch(server.url + path + where, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() } as Answer;
}

function lease(name: string, spec: object = {}, metadata: object = {}): object {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, ...metadata },
    spec: { holderIdentity: 'a', leaseDurationSeconds: 15, ...spec },
  };
}

const refusal = ({ status, body }: Answer) => [status, body.kind, body.reason];

describe('objects', () => {
  test('are created once, with a uid and a version', async () => {
    const { status, body } = await call('POST', '', lease('x'));
    expect(status).toBe(201);
    expect(body.metadata).toMatchObject({ name: 'x', namespace: 'default' });
    expect(body.metadata['uid']).toBeDefined();
    expect(body.metadata['resourceVersion']).toMatch(/^\d+$/);
    const again = await call('POST', '', lease('x'));
    expect(refusal(again)).toEqual([409, 'Status', 'AlreadyExists']);
    expect((await call('GET', '/x')).body).toEqual(body);
  });

  test('that are not there are not found, nor are namespaces', async () => {
    const gone = await call('GET', '/x');
    expect(refusal(gone)).toEqual([404, 'Status', 'NotFound']);
    expect(gone.body.message).toBe('leases.coordination.k8s.io "x" not found');
    const response = await fetch(`${server.url}${path.replace('default', 'nowhere')}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminToken}` },
      body: JSON.stringify(lease('x')),
    });
    expect(await response.json()).toMatchObject({
      code: 404,
      message: 'namespaces "nowhere" not found',
      details: { kind: 'namespaces' },
    });
  });

  test('are replaced on the version they have, and no other', async () => {
    const first = (await call('POST', '', lease('x'))).body;
    const changed = { ...first, spec: { ...first.spec, holderIdentity: 'b' } };
    const second = await call('PUT', '/x', changed);
    expect(second.status).toBe(200);
    expect(Number(second.body.metadata['resourceVersion'])).toBeGreaterThan(
      Number(first.metadata['resourceVersion']),
    );
    expect(refusal(await call('PUT', '/x', changed))).toEqual([409, 'Status', 'Conflict']);
    const { resourceVersion: _, ...metadata } = first.metadata;
    expect(refusal(await call('PUT', '/x', { ...changed, metadata }))).toEqual([
      422,
      'Status',
      'Invalid',
    ]);
  });

  test('keep their version when a write changes nothing', async () => {
    const { body } = await call('POST', '', lease('x'));
    const { revision } = server.registry;
    expect((await call('PUT', '/x', body)).body).toEqual(body);
    expect(server.registry.revision).toBe(revision);
  });

  test('that were deleted are not made again by an update of the old one', async () => {
    const { body } = await call('POST', '', lease('x'));
    expect((await call('DELETE', '/x')).status).toBe(200);
    expect(refusal(await call('PUT', '/x', body))).toEqual([409, 'Status', 'Conflict']);
    expect((await call('PUT', '/x', lease('x'))).status).toBe(201);
    const other = await call('PUT', '/x', body);
    expect(refusal(other)).toEqual([409, 'Status', 'Conflict']);
  });

  test('are patched by merging, conditionally if the patch says so', async () => {
    const { body } = await call('POST', '', lease('x', {}, { labels: { a: '1', b: '2' } }));
    const type = 'application/merge-patch+json';
    const patch = { metadata: { labels: { a: null, c: '3' } }, spec: { leaseTransitions: 4 } };
    const patched = await call('PATCH', '/x', patch, { type });
    expect(patched.body).toMatchObject({
      metadata: { labels: { b: '2', c: '3' } },
      spec: { holderIdentity: 'a', leaseTransitions: 4 },
    });
    const { resourceVersion } = body.metadata;
    const late = { metadata: { resourceVersion, labels: {} } };
    expect((await call('PATCH', '/x', late, { type })).status).toBe(409);
    expect((await call('PATCH', '/x', patch)).status).toBe(415);
  });

  test('are deleted on a condition', async () => {
    await call('POST', '', lease('x'));
    const preconditions = { resourceVersion: '1' };
    expect((await call('DELETE', '/x', { preconditions })).status).toBe(409);
    expect((await call('DELETE', '/x', {})).status).toBe(200);
    expect((await call('DELETE', '/x')).status).toBe(404);
  });

  test('are checked, normalized, and lose what a server does not know', async () => {
    const spec = { renewTime: '2026-01-01T02:00:00.000001+02:00', acquireTime: null, future: 1 };
    const { body } = await call('POST', '', lease('x', spec));
    expect(body.spec).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      renewTime: '2026-01-01T00:00:00.000001Z',
    });
    const bad = async (fields: object) => (await call('POST', '', lease('y', fields))).status;
    expect(await bad({ renewTime: '2026-01-01T00:00:00Z' })).toBe(400);
    expect(await bad({ leaseDurationSeconds: 0 })).toBe(422);
    expect(await bad({ leaseTransitions: -1 })).toBe(422);
    expect(await bad({ preferredHolder: 'x' })).toBe(422);
    expect((await call('POST', '', lease('Upper'))).status).toBe(422);
    const annotations = { large: 'x'.repeat(256 * 1024) };
    expect((await call('POST', '', lease('z', {}, { annotations }))).status).toBe(422);
  });

  test('are listed, all or one', async () => {
    await call('POST', '', lease('x'));
    await call('POST', '', lease('y'));
    const all = await call('GET', '');
    expect(all.body).toMatchObject({ kind: 'LeaseList', metadata: { resourceVersion: '1002' } });
    expect(all.body.items).toHaveLength(2);
    expect((await call('GET', '?fieldSelector=metadata.name%3Dx')).body.items).toHaveLength(1);
  });
});

describe('a watch', () => {
  async function* watch(query: string): AsyncGenerator<[string, string | undefined, string]> {
    const headers = { authorization: `Bearer ${adminToken}` };
    const response = await fetch(`${server.url}${path}?watch=1&${query}`, { headers });
    let rest = '';
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const lines = (rest + Buffer.from(chunk).toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const { type, object } = JSON.parse(line);
        yield [type, object.metadata?.name ?? object.reason, object.metadata?.resourceVersion];
      }
    }
  }

  test('from a version tells what came after it, and goes on', async () => {
    const { body } = await call('POST', '', lease('x'));
    await call('PUT', '/x', { ...body, spec: { holderIdentity: 'b' } });
    const events = watch('resourceVersion=1001&fieldSelector=metadata.name%3Dx');
    expect((await events.next()).value).toEqual(['MODIFIED', 'x', '1002']);
    await call('POST', '', lease('y'));
    await call('DELETE', '/x');
    expect((await events.next()).value).toEqual(['DELETED', 'x', '1004']);
    server.endWatches();
    expect((await events.next()).done).toBe(true);
  });

  test('from nowhere tells what is there first', async () => {
    await call('POST', '', lease('x'));
    const events = watch('');
    expect((await events.next()).value).toEqual(['ADDED', 'x', '1001']);
    await call('POST', '', lease('y'));
    expect((await events.next()).value).toEqual(['ADDED', 'y', '1002']);
    server.endWatches(new StatusError(410, 'Expired', 'too old'));
    expect((await events.next()).value).toEqual(['ERROR', 'Expired', undefined]);
    expect((await events.next()).done).toBe(true);
  });

  test('from a version that was forgotten is told so', async () => {
    await call('POST', '', lease('x'));
    server.registry.compact();
    await call('POST', '', lease('y'));
    const events = watch('resourceVersion=1000');
    expect((await events.next()).value).toEqual(['ERROR', 'Expired', undefined]);
    expect((await events.next()).done).toBe(true);
  });

  test('gives bookmarks, and ends when its time is up', async () => {
    const types = new Set<string>();
    const query = 'allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=1000';
    for await (const [type] of watch(query)) types.add(type);
    expect([...types]).toEqual(['BOOKMARK']);
  });
});

describe('accounts', () => {
  test('must be known, and allowed what they do', async () => {
    expect(refusal(await call('GET', '/x', undefined, { token: 'unknown' }))).toEqual([
      401,
      'Status',
      'Unauthorized',
    ]);
    server.accounts.addToken('of-u', 'u');
    const token = 'of-u';
    const get = () => call('GET', '/x', undefined, { token });
    expect((await get()).body.message).toBe(
      'leases.coordination.k8s.io "x" is forbidden: User "u" cannot get resource "leases" in API ' +
        'group "coordination.k8s.io" in the namespace "default"',
    );
    server.accounts.allow('u', { verbs: ['get', 'watch'], names: ['x'] });
    expect((await get()).status).toBe(404);
    expect((await call('GET', '/y', undefined, { token })).status).toBe(403);
    expect((await call('POST', '', lease('x'), { token })).status).toBe(403);
    // A selector for one name counts as that name.
    const selector = '?watch=1&fieldSelector=metadata.name%3D';
    expect((await call('GET', `${selector}y`, undefined, { token })).status).toBe(403);
    expect((await call('GET', '?watch=1', undefined, { token })).status).toBe(403);
    server.accounts.removeToken(token);
    expect((await get()).status).toBe(401);
  });
});

describe('faults', () => {
  test('strike before or after the work was done', async () => {
    const fault = (action: Fault['action']) => server.faults.add({ verbs: ['create'], action });
    fault({ kind: 'reset' });
    await expect(call('POST', '', lease('x'))).rejects.toThrow();
    expect(server.registry.find('default', 'x')).toBeUndefined();
    fault({ kind: 'drop-reply' });
    await expect(call('POST', '', lease('x'))).rejects.toThrow();
    expect(server.registry.find('default', 'x')).toBeDefined();
    fault({ kind: 'answer', status: 429, headers: { 'retry-after': '3' }, body: '{}' });
    expect((await call('POST', '', lease('y'))).status).toBe(429);
    let release: () => void = () => {};
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    fault({ kind: 'hold', until });
    const held = call('POST', '', lease('y'));
    expect((await call('GET', '/y')).status).toBe(404);
    release();
    expect((await held).status).toBe(201);
  });

  test('of a server that is killed and comes back with its Leases', async () => {
    await call('POST', '', lease('x'));
    await server.stop();
    await expect(call('GET', '/x')).rejects.toThrow();
    await server.listen();
    expect((await call('GET', '/x')).status).toBe(200);
  });
});
