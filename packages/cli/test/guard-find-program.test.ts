import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '../src/guard/find-program.ts';

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'find-program-'));
  const files: [string, string, number][] = [
    ['first/plain', 'data', 0o644],
    ['first/tool', '#!/bin/sh\n', 0o755],
    ['second/plain', '#!/bin/sh\n', 0o755],
    ['second/tool', '#!/bin/sh\n', 0o755],
    ['second/broken', '#! /no/such/interpreter -x\n', 0o755],
    ['second/empty', '', 0o755],
    ['second/-dash', '#!/bin/sh\n', 0o755],
    ['-here/tool', '#!/bin/sh\n', 0o755],
  ];
  for (const [path, content, mode] of files) {
    mkdirSync(join(dir, path, '..'), { recursive: true });
    writeFileSync(join(dir, path), content);
    chmodSync(join(dir, path), mode);
  }
  mkdirSync(join(dir, 'first/broken'));
  symlinkSync('tool', join(dir, 'second/link'));
  symlinkSync('nowhere', join(dir, 'second/dangling'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const find = (name: string, path?: string) =>
  findProgram(name, path === undefined ? {} : { PATH: path.replaceAll('@', dir) }, dir);

test('the first in PATH that can be run', () => {
  expect(find('tool', '@/first:@/second')).toEqual({ path: `${dir}/first/tool` });
  expect(find('tool', '@/none:@/second:@/first')).toEqual({ path: `${dir}/second/tool` });
  // Passed over, as execvp does: one that is not executable, and a directory.
  expect(find('plain', '@/first:@/second')).toEqual({ path: `${dir}/second/plain` });
  expect(find('link', '@/second')).toEqual({ path: `${dir}/second/link` });
});

test('a relative or empty element of PATH is meant from the directory of the program', () => {
  expect(find('tool', 'second')).toEqual({ path: 'second/tool' });
  expect(findProgram('tool', { PATH: ':/none' }, join(dir, 'first'))).toEqual({ path: './tool' });
});

test('a name with a slash is a path, whatever PATH says', () => {
  expect(find('first/tool', '@/second')).toEqual({ path: 'first/tool' });
  expect(find('./tool', '@/second').problem).toMatchObject({ kind: 'not-found', exitCode: 127 });
});

test('nothing found looks like an option', () => {
  expect(find('-dash', '@/second')).toEqual({ path: `${dir}/second/-dash` });
  expect(find('-here/tool')).toEqual({ path: './-here/tool' });
  expect(find('tool', '-here')).toEqual({ path: './-here/tool' });
});

test('without PATH the usual directories', () => {
  expect(find('sh').path).toMatch(/^\/(usr\/)?bin\/sh$/);
});

test.each(['missing', '', 'a\0b', 'dangling', 'tool/tool'])('%j is not found: 127', (name) => {
  const { problem } = find(name, '@/second');
  expect(problem).toMatchObject({ kind: 'not-found', exitCode: 127 });
  expect(problem?.message).toContain(JSON.stringify(name));
});

test.each([
  ['plain', '@/first', /plain: permission denied$/],
  ['broken', '@/first', /broken: it is a directory$/],
  ['broken', '@/second', /broken: its interpreter \/no\/such\/interpreter cannot be run$/],
])('%s in %s is found and cannot be run: 126', (name, path, message) => {
  const { problem } = find(name, path);
  expect(problem).toMatchObject({ kind: 'not-executable', exitCode: 126 });
  expect(problem?.message).toMatch(message);
});

test('an empty file is for the shell to refuse or run', () => {
  expect(find('empty', '@/second')).toEqual({ path: `${dir}/second/empty` });
});
