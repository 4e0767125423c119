// The costs of the native client that this one avoids: at install time, and for each call.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../', import.meta.url);
const files = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
  .map(({ parentPath, name }) => `${parentPath}/${name}`.replaceAll('\\', '/'));
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Record<
  string,
  unknown
>;

it('ZKN 1: nothing is compiled or downloaded by an install: no dependency, script or native part', () => {
  for (const key of ['dependencies', 'optionalDependencies', 'peerDependencies', 'gypfile', 'os']) {
    expect(manifest).not.toHaveProperty(key);
  }
  for (const key of ['bundleDependencies', 'bundledDependencies', 'binary', 'cpu', 'libc']) {
    expect(manifest).not.toHaveProperty(key);
  }
  const atInstall = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'];
  const scripts = Object.keys((manifest['scripts'] ?? {}) as object);
  expect(scripts.filter((name) => atInstall.includes(name))).toEqual([]);
  const native = /binding\.gyp$|\.(?:node|c|cc|cpp|h|gypi|wasm|so|dylib|dll)$/;
  expect(files.filter((file) => native.test(file))).toEqual([]);
  expect(files.length).toBeGreaterThan(50);
});

it('ZKN 9: what every call goes through formats nothing, and takes little from Node', () => {
  const hot = /\/src\/(?:(?:net|protocol|session)\/[^/]+|[^/]+)\.ts$/;
  const modules = new Set<string>();
  for (const file of files.filter((name) => hot.test(name) && !name.endsWith('/bin.ts'))) {
    const source = readFileSync(file, 'utf8');
    for (const [, name] of source.matchAll(/from '([^.][^']*)'/g)) modules.add(name!);
    expect(source).not.toMatch(/console\.|inspect\(/);
  }
  expect([...modules].sort()).toEqual([
    'node:crypto',
    'node:diagnostics_channel',
    'node:dns/promises',
    'node:net',
    'node:tls',
  ]);
});
