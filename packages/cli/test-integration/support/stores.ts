/** One real server of every store for a file of tests; for Kubernetes the stand-in. */
import { writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocalServer } from '@incumbent/servers';
import {
  adminToken,
  etcdAvailable,
  FakeApiServer,
  makeServerDirectory,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPostgres,
  startRedis,
  startRedisCluster,
  startSentinel,
} from '@incumbent/servers';

import { afterAll, beforeAll } from 'vitest';

export interface TestStore {
  readonly url: string;
  /** An address where no server listens. */
  readonly unreachable: string;
  close(): Promise<unknown>;
  /** Ends the server as if the machine had stopped. @returns starts it again */
  interrupt?(): Promise<() => Promise<void>>;
}

interface TestStoreKind {
  readonly name: string;
  /** Why it cannot be had here. */
  readonly missing: string | undefined;
  /** Whether the store can say who waits. */
  readonly lists: boolean;
  /** Of a lease that is waited out: long enough for a machine that is busy. */
  readonly lease: string;
  /** Another way to a store that is tested by the others: the main things are enough. */
  readonly isVariant?: true;
  readonly open: () => Promise<TestStore>;
}

/** Closes what was opened later first. */
function together(url: string, unreachable: string, ...servers: { close(): Promise<unknown> }[]) {
  return {
    url,
    unreachable,
    async close() {
      for (const server of servers.reverse()) await server.close();
    },
  };
}

async function interrupt(server: LocalServer): Promise<() => Promise<void>> {
  await server.kill();
  return () => server.start();
}

/** A kubeconfig for a stand-in, with a user for each token. */
export function writeKubeconfig(
  directory: string,
  server: FakeApiServer,
  tokens: Readonly<Record<string, string>>,
): string {
  const path = join(directory, `config-${server.port}`);
  const ca = Buffer.from(server.certificates?.ca.text ?? '').toString('base64');
  const names = Object.keys(tokens);
  // People write a kubeconfig as YAML and not as JSON, so the tests do the same.
  const lines = [
    'apiVersion: v1',
    'kind: Config',
    `current-context: ${names[0]}`,
    'clusters:',
    `  - { name: c, cluster: { server: "${server.url}", certificate-authority-data: ${ca} } }`,
    'users:',
    ...names.map((name) => `  - { name: ${name}, user: { token: ${tokens[name]} } }`),
    'contexts:',
    ...names.map(
      (name) => `  - { name: ${name}, context: { cluster: c, user: ${name}, namespace: other } }`,
    ),
  ];
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

export const kinds: readonly TestStoreKind[] = [
  {
    name: 'PostgreSQL',
    missing: postgresAvailable(),
    lists: true,
    lease: '4s',
    async open() {
      const server = await startPostgres();
      return {
        ...together(server.url, 'postgres://127.0.0.1:1/none', server),
        interrupt: () => interrupt(server),
      };
    },
  },
  {
    name: 'Redis',
    missing: redisAvailable(),
    lists: true,
    lease: '4s',
    async open() {
      const server = await startRedis();
      return {
        ...together(server.url, 'redis://127.0.0.1:1', server),
        interrupt: () => interrupt(server),
      };
    },
  },
  {
    name: 'Redis behind Sentinels',
    missing: redisAvailable(),
    lists: true,
    lease: '4s',
    isVariant: true,
    async open() {
      const primary = await startRedis();
      const replica = await startRedis({ replicaOf: primary });
      const sentinel = await startSentinel({ primary, name: 'main' });
      return together(
        `redis://127.0.0.1:${sentinel.port}?sentinel=main`,
        'redis://127.0.0.1:1?sentinel=main',
        ...[primary, replica, sentinel],
      );
    },
  },
  {
    name: 'a cluster of Redis',
    missing: redisAvailable(),
    lists: true,
    lease: '4s',
    isVariant: true,
    async open() {
      const nodes = await startRedisCluster();
      const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
      return together(
        `redis://${hosts}?cluster=true`,
        'redis://127.0.0.1:1?cluster=true',
        ...nodes,
      );
    },
  },
  {
    name: 'etcd',
    missing: etcdAvailable(),
    lists: true,
    // Of which belief is less than a half.
    lease: '8s',
    async open() {
      const server = await startEtcd();
      // So short are its elections, and beliefs may be the longer.
      const url = `etcd://${server.endpoint}/tests?election-timeout=100ms`;
      return {
        ...together(url, 'etcd://127.0.0.1:1', server),
        interrupt: () => interrupt(server),
      };
    },
  },
  {
    name: 'Kubernetes',
    missing: undefined,
    lists: false,
    lease: '4s',
    async open() {
      const server = await FakeApiServer.start();
      const directory = await makeServerDirectory('kubeconfig');
      const path = writeKubeconfig(directory, server, { admin: adminToken });
      const gone = await FakeApiServer.start();
      const nowhere = writeKubeconfig(directory, gone, { admin: adminToken });
      await gone.close();
      const files = { close: () => rm(directory, { recursive: true }) };
      const at = (config: string) => `k8s://?kubeconfig=${config}`;
      return {
        ...together(at(path), at(nowhere), server, files),
        async interrupt() {
          await server.stop();
          return () => server.listen();
        },
      };
    },
  },
];

/** Starts one of each before the tests of the file. In CI a missing server is a failure. */
export function sharedStores(): (name: string) => TestStore {
  const stores = new Map<string, TestStore>();
  beforeAll(async () => {
    for (const { missing } of kinds) {
      if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);
    }
    const opened = kinds.filter(({ missing }) => missing === undefined);
    await Promise.all(opened.map(async ({ name, open }) => stores.set(name, await open())));
  });
  afterAll(async () => {
    await Promise.all([...stores.values()].map((store) => store.close()));
  });
  return (name) => stores.get(name)!;
}
