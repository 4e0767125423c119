import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubernetesApi } from '../src/backends/kubernetes/index.ts';
import {
  apiServer,
  fromKubeConfig,
  inCluster,
  kubernetes,
  schema,
} from '../src/backends/kubernetes/index.ts';
import { createElection, InvalidOptionError, StoreUnsuitableError } from '../src/index.ts';

const api: KubernetesApi = apiServer({ url: 'https://10.0.0.1:6443' });

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'incumbent-kubernetes-'));
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

function account(files: Record<string, string>): string {
  const path = mkdtempSync(join(directory, 'account-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
  return path;
}

describe('the name of an election', () => {
  const open = (name: string, options = {}) =>
    createElection({ name, backend: kubernetes(api, options) });

  test('is the name of its Lease', async () => {
    for (const name of ['billing', 'a', 'my-app.example.com', '0-1.2', 'x'.repeat(200)]) {
      await open(name).close();
    }
  });

  test('that no Lease can have is refused with the rule', () => {
    for (const name of ['Billing', 'a_b', 'a/b', '-a', 'a-', 'a..b', 'a.-b', '.', 'zoë', 'a b']) {
      expect(() => open(name)).toThrow(InvalidOptionError);
      expect(() => open(name)).toThrow('DNS-1123 subdomain');
      expect(() => open(name)).toThrow(`the election "${name}"`);
    }
  });

  test('can be mapped, and the result is checked', async () => {
    const leaseName = (election: string) => election.toLowerCase().replaceAll(/[^a-z0-9]/g, '-');
    await open('Billing/EU', { leaseName }).close();
    expect(() => open('Billing!', { leaseName })).toThrow('leaseName made "billing-" of the');
    expect(() => open('a', { leaseName: () => 7 })).toThrow('leaseName made 7 of the election "a"');
  });
});

describe('options', () => {
  test('that do not exist or have no use are refused by name', () => {
    const refuses = (options: object, message: string) => {
      expect(() => kubernetes(api, options)).toThrow(InvalidOptionError);
      expect(() => kubernetes(api, options)).toThrow(message);
    };
    refuses({ nameSpace: 'x' }, 'no option "nameSpace"; it knows namespace, leaseName');
    refuses({ namespace: 'a.b' }, 'namespace "a.b" is no name of a namespace');
    refuses({ namespace: 'x'.repeat(64) }, 'DNS-1123 label');
    refuses({ namespace: '' }, 'namespace ""');
    refuses({ leaseName: 'x' }, 'leaseName must be a function');
    expect(() => kubernetes(api, null as never)).toThrow('takes options, not null');
  });

  test('the namespace is the one given, else that of the client, else default', () => {
    expect(kubernetes(api).description).toBe(
      'Leases in the namespace "default" of https://10.0.0.1:6443',
    );
    const named = apiServer({ url: 'https://h', namespace: 'jobs' });
    expect(kubernetes(named).description).toContain('"jobs"');
    expect(kubernetes(named, { namespace: 'other' }).description).toContain('"other"');
  });

  test('a client of another kind is refused, and the error names the right kinds', () => {
    for (const client of [undefined, null, {}, 'https://h', { request() {} }]) {
      expect(() => kubernetes(client as never)).toThrow(InvalidOptionError);
      expect(() => kubernetes(client as never)).toThrow('takes inCluster(), apiServer()');
    }
    expect(() => kubernetes({ readNamespacedLease() {} } as never)).toThrow(
      'the KubeConfig itself, not the CoordinationV1Api',
    );
  });
});

describe('apiServer', () => {
  test.each([
    [{}, 'url undefined is no URL'],
    [{ url: 'h:6443/x y' }, 'write https://host:6443'],
    [{ url: 'ftp://h' }, 'has the scheme ftp:'],
    [{ url: 'https://u:p@h' }, 'url holds a password'],
    [{ url: 'http://h', token: 't' }, 'in clear text over the network'],
    [{ url: 'https://h', token: 't', tokenFile: 'f' }, 'token or tokenFile, not both'],
    [{ url: 'https://h', token: 'two words' }, 'token holds no token'],
    [{ url: 'https://h', cert: 'c' }, 'cert and key belong together'],
    [{ url: 'https://h', tokens: 'c' }, 'no option "tokens"'],
  ])('refuses %j', (options, message) => {
    expect(() => apiServer(options as never)).toThrow(InvalidOptionError);
    expect(() => apiServer(options as never)).toThrow(message);
    expect(() => apiServer(options as never)).not.toThrow('u:p');
  });

  test('takes http on loopback, as of kubectl proxy', () => {
    expect(apiServer({ url: 'http://127.0.0.1:8001', token: 't' }).url).toBe(
      'http://127.0.0.1:8001',
    );
    expect(apiServer({ url: 'http://h:8001' }).url).toBe('http://h:8001');
  });
});

describe('inCluster', () => {
  const files = { token: 't\n', 'ca.crt': 'PEM', namespace: 'jobs\n' };

  test('goes by the service account, also to an IPv6 address', () => {
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const client = inCluster({ directory: account(files), env });
    expect(client.url).toBe('https://[fd00::1]');
    expect(client.namespace).toBe('jobs');
  });

  test('says that this is no Pod, or one without an account', () => {
    expect(() => inCluster({ env: {} })).toThrow(StoreUnsuitableError);
    expect(() => inCluster({ env: {} })).toThrow('runs in no Pod');
    const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
    expect(() => inCluster({ directory: account({}), env })).toThrow(
      'leave out automountServiceAccountToken: false',
    );
  });
});

describe('fromKubeConfig', () => {
  const config = (user: object, cluster: object = {}) => ({
    'current-context': 'prod',
    contexts: [
      { name: 'prod', context: { cluster: 'c1', user: 'u1', namespace: 'jobs' } },
      { name: 'lost', context: { cluster: 'c2' } },
      { name: 'anonymous', context: { cluster: 'c1' } },
    ],
    clusters: [{ name: 'c1', cluster: { server: 'https://prod:6443', ...cluster } }],
    users: [{ name: 'u1', user }],
  });

  test('takes the current context or the one that is named', () => {
    const client = fromKubeConfig(config({ token: 't' }));
    expect([client.url, client.namespace]).toEqual(['https://prod:6443', 'jobs']);
    const other = fromKubeConfig(config({ token: 't' }), { context: 'anonymous' });
    expect([other.url, other.namespace]).toEqual(['https://prod:6443', undefined]);
  });

  test('reads certificates beside the file, or in it', () => {
    const path = account({ 'ca.pem': 'PEM' });
    const cluster = { 'certificate-authority': 'ca.pem' };
    expect(fromKubeConfig(config({ token: 't' }, cluster), { directory: path }).url).toBeDefined();
    expect(() => fromKubeConfig(config({ token: 't' }, cluster), { directory })).toThrow(
      'certificate-authority cannot be read',
    );
    const data = { 'certificate-authority-data': Buffer.from('PEM').toString('base64') };
    expect(fromKubeConfig(config({ token: 't' }, data)).url).toBeDefined();
  });

  test.each([
    [undefined, {}, 'a kubeconfig must be an object, not undefined'],
    [{}, {}, 'no current-context'],
    [config({}), { context: 'x' }, 'no context "x"; it has "prod", "lost", "anonymous"'],
    [config({}), { context: 'lost' }, 'no cluster "c2"; it has "c1"'],
    [config({ 'auth-provider': {} }), {}, 'uses "auth-provider", which needs a whole client'],
    [config({ username: 'x' }), {}, 'uses "username"'],
    [config({ as: 'x' }), {}, 'uses "as"'],
    [config({}, { 'proxy-url': 'x' }), {}, 'uses "proxy-url"'],
    [config({ exec: { apiVersion: 'v0', command: 'x' } }), {}, 'plugin of version "v0"'],
    [
      config({
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: 'x',
          interactiveMode: 'Always',
        },
      }),
      {},
      'interactiveMode: Always',
    ],
  ])('refuses parts that it cannot use (%#)', (parsed, options, message) => {
    expect(() => fromKubeConfig(parsed, options)).toThrow(InvalidOptionError);
    expect(() => fromKubeConfig(parsed, options)).toThrow(message);
  });
});

describe('schema', () => {
  interface Manifest {
    readonly kind: string;
    readonly metadata: object;
    readonly rules?: readonly object[];
  }
  const manifests = (text: string) =>
    parseAllDocuments(text).map((each) => each.toJS() as Manifest);

  test('is a ServiceAccount, a Role and a RoleBinding', () => {
    const [account, role, binding] = manifests(schema());
    expect(account).toMatchObject({
      kind: 'ServiceAccount',
      metadata: { name: 'incumbent', namespace: 'default' },
    });
    expect(role).toMatchObject({
      kind: 'Role',
      rules: [
        {
          apiGroups: ['coordination.k8s.io'],
          resources: ['leases'],
          verbs: ['get', 'create', 'update', 'watch'],
        },
      ],
    });
    expect(binding).toMatchObject({
      kind: 'RoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'incumbent' },
      subjects: [{ kind: 'ServiceAccount', name: 'incumbent', namespace: 'default' }],
    });
  });

  test('can be for some Leases alone, but creating has no name', () => {
    const text = schema({ namespace: 'jobs', serviceAccount: 'app', elections: ['a', 'b.c'] });
    const [, role] = manifests(text);
    expect(role?.metadata).toEqual({ name: 'app', namespace: 'jobs' });
    expect(role?.rules).toEqual([
      {
        apiGroups: ['coordination.k8s.io'],
        resources: ['leases'],
        resourceNames: ['a', 'b.c'],
        verbs: ['get', 'update', 'watch'],
      },
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    ]);
  });

  test('is the same as in the example for its Lease', () => {
    const example = new URL('../../../examples/kubernetes/role.yaml', import.meta.url);
    const printed = manifests(
      schema({
        namespace: 'ops',
        serviceAccount: 'checksum-controller',
        elections: ['checksum-controller'],
      }),
    );
    const written = manifests(readFileSync(example, 'utf8'));
    expect(written.map(({ kind, metadata }) => [kind, metadata])).toEqual(
      printed.map(({ kind, metadata }) => [kind, metadata]),
    );
    expect(written[1]?.rules?.slice(0, 2)).toEqual(printed[1]?.rules);
  });

  test('refuses names that cannot be', () => {
    expect(() => schema({ namespace: 'A' })).toThrow(InvalidOptionError);
    expect(() => schema({ elections: [] })).toThrow('leave it out for all');
    expect(() => schema({ elections: ['a b'] })).toThrow('DNS-1123');
    expect(() => schema({ serviceAccount: 'a\nkind: x' })).toThrow('DNS-1123');
  });
});
