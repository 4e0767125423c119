import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commands } from '../src/command-table.ts';
import { parameterNames } from '../src/zookeeper/parameters.ts';
import { parseZooKeeperUrl } from '../src/zookeeper/url.ts';
import { invoke } from './support/invoke.ts';

const page = readFileSync(new URL('../../../docs/cli.md', import.meta.url), 'utf8');

test.each(commands.map(({ name }) => name))(
  'docs/cli.md has a section on `%s`, an example and every option',
  async (name) => {
    expect(page).toMatch(new RegExp(`^## ${name}$`, 'm'));
    expect(page).toMatch(new RegExp(`^(\\$ )?incumbent ${name}\\b`, 'm'));
    const { stdout } = await invoke([name, '--help']);
    const options = stdout.match(/^ {2}(?:-\w, )?--[a-z-]+/gm) ?? [];
    for (const option of options) {
      const long = option.replace(/^.*--/, '--');
      if (long !== '--help') expect(page).toContain(long);
    }
  },
);

test('docs/cli.md has every parameter of a ZooKeeper URL, and each of its URLs is understood', () => {
  for (const name of parameterNames)
    expect(page).toMatch(new RegExp(`^\\|.*\`${name}\`.*\\|`, 'm'));
  const urls = page.match(/zks?:\/\/h1[^'\s`]*/g) ?? [];
  expect(urls.length).toBeGreaterThan(5);
  for (const url of urls) expect(parseZooKeeperUrl(url, '--store').url).toContain('h1:');
});

test('every example of a help is a command line that is understood', async () => {
  const table = commands.map((entry) => ({ ...entry, load: async () => async () => 0 }));
  for (const { examples } of commands) {
    for (const { line } of examples) {
      // What a shell would make of it, as far as the examples go.
      const own = line.replace(/^.*\$\((.*)\).*$/, '$1').split(/ [|>]| >\/| \|\|/)[0] ?? '';
      const words = [...own.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);
      const at = words.indexOf('incumbent');
      expect(at).toBeGreaterThanOrEqual(0);
      const result = await invoke(words.slice(at + 1) as string[], { table });
      expect(result, line).toEqual({ code: 0, stdout: '', stderr: '' });
    }
  }
});
