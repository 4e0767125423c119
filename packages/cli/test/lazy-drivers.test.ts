// `incumbent run` on a file store must start as fast as if there were no other store.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const source = fileURLToPath(new URL('../src/', import.meta.url));
/** Those of `incumbent`: the other two commands are about ZooKeeper, and Redis on it. */
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !/^(?:zookeeper|redis-failover)-command/.test(name),
);

/** The imports of a file when it is loaded; imports of types vanish. */
function importsOf(name: string): string[] {
  const text = readFileSync(join(source, name), 'utf8');
  return [...text.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)';$/gms)].map(
    ([, from]) => from!,
  );
}

test('drivers are loaded by import() only', () => {
  const drivers =
    /^(?:pg|redis|@grpc\/grpc-js|@aws-sdk\/client-s3|@google-cloud\/storage|yaml)(?:\/|$)/;
  // Only what listens loads this one, and so prom-client.
  const importers = files.filter((name) =>
    importsOf(name).some((from) => /^\.{1,2}\/(?:run\/)?metrics\.ts$/.test(from)),
  );
  expect(importers.filter((name) => !/^redis-failover-command/.test(name))).toEqual([]);
  const eager = files.filter((name) => importsOf(name).some((from) => drivers.test(from)));
  expect(eager).toEqual([]);
});

test('a store is known to its own directory, to its doctor and to nobody else', () => {
  const stores =
    /^(?:incumbent\/(?:postgres|redis|etcd|kubernetes|zookeeper|s3|gcs)|@incumbent\/zookeeper)$/;
  const own = /^(?:postgres|redis|etcd|kubernetes|zookeeper|s3|gcs|doctor)\//;
  const others = files.filter(
    (name) =>
      !own.test(name.replaceAll('\\', '/')) && importsOf(name).some((from) => stores.test(from)),
  );
  expect(others).toEqual([]);
  // Nor does what every command loads know one of those directories.
  const reached = new Set<string>();
  const visit = (name: string) => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const from of importsOf(name)) if (from.startsWith('.')) visit(join(name, '..', from));
  };
  for (const name of [
    'bin.ts',
    'open-store.ts',
    ...files.filter((file) => file.startsWith('commands')),
  ]) {
    visit(name);
  }
  expect(
    [...reached].filter((name) =>
      /^(?:postgres|redis|etcd|kubernetes|zookeeper|s3|gcs)\//.test(name),
    ),
  ).toEqual([]);
});
