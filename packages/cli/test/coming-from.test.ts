import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commands } from '../src/command-table.ts';
import { parseZooKeeperUrl } from '../src/zookeeper/url.ts';
import { invoke } from './support/invoke.ts';

const pages = new URL('../../../docs/coming-from/', import.meta.url);
const texts = readdirSync(pages).map((name) => readFileSync(new URL(name, pages), 'utf8'));

/** Those of blocks for a shell; a backslash at the end of a line goes on in the next. */
const lines = texts
  .flatMap((text) => [...text.matchAll(/^```sh\n(.*?)^```$/gms)])
  .flatMap(([, code = '']) => code.replaceAll(/\\\n\s*/g, '').split('\n'))
  .filter((line) => line.startsWith('incumbent '));

test('the pages of docs/coming-from have command lines', () => {
  expect(lines.length).toBeGreaterThan(1);
});

test.each(lines)('it is understood: %s', async (line) => {
  const table = commands.map((entry) => ({ ...entry, load: async () => async () => 0 }));
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);
  const result = await invoke(words.slice(1) as string[], { table });
  expect(result).toEqual({ code: 0, stdout: '', stderr: '' });
  const [url] = /zks?:\/\/[^']*/.exec(line) as RegExpExecArray;
  expect(() => parseZooKeeperUrl(url, '--store')).not.toThrow();
});
