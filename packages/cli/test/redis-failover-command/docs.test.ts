import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commands } from '../../src/redis-failover-command/command-table.ts';
import { allSettings } from '../../src/redis-failover-command/config/settings.ts';
import { parseConfiguration } from '../../src/redis-failover-command/config/yaml-file.ts';
import { Metrics } from '../../src/redis-failover-command/manage/metrics.ts';
import { FakeManager } from './fake-manager.ts';
import { invoke } from './invoke.ts';

const reference = new URL('../../../../docs/reference/', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, reference), 'utf8');
const commandsPage = read('redis-failover/commands.md');
const configurationPage = read('redis-failover/configuration.md');
const operationsPage = read('redis-failover/operations.md');
/** The overview, and the pages of one topic each. */
const pages = [
  read('redis-failover.md'),
  ...readdirSync(new URL('redis-failover/', reference)).map((name) =>
    read(`redis-failover/${name}`),
  ),
].join('\n');
const readme = readFileSync(new URL('../../../redis-failover/README.md', import.meta.url), 'utf8');

test.each(commands.map(({ name }) => name))(
  'the page of the commands has a section on `%s` and an example, and every option is explained',
  async (name) => {
    expect(commandsPage).toMatch(new RegExp(`^## ${name}$`, 'm'));
    expect(commandsPage).toMatch(new RegExp(`^incumbent-redis ${name}\\b`, 'm'));
    const { stdout } = await invoke([name, '--help']);
    for (const [option] of stdout.matchAll(/(?<=^ {2}(?:-\w, )?)--[a-z-]+/gm)) {
      if (option !== '--help') expect(pages).toContain(`\`${option}\``);
    }
  },
);

test('the page of the configuration has every key and every variable', () => {
  for (const { key, variable } of allSettings) {
    expect(configurationPage).toContain(`\`${key}\``);
    if (variable !== undefined) expect(configurationPage).toContain(`\`${variable}\``);
  }
});

test('its configuration is one that is understood', () => {
  const yaml = /```yaml\n(.*?)```/s.exec(configurationPage)?.[1] ?? '';
  const production = parseConfiguration(yaml, 'redis.yml', 'production');
  expect(production.get('required_node_managers')?.value).toBe(2);
  expect(production.get('password_file')?.value).toBe('/run/secrets/redis');
  const staging = parseConfiguration(yaml, 'redis.yml', 'staging');
  expect(staging.get('root')?.value).toBe('/redis_failover_staging');
});

test('the page of operations has every metric', async () => {
  const manager = new FakeManager({ nodes: ['a:1'], zookeeper: 'h' });
  const text = await new Metrics('0', () => manager.status).text();
  const names = [...text.matchAll(/^# TYPE (incumbent_redis_\w+)/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) expect(operationsPage).toMatch(new RegExp(`\`${name}[\`{]`));
  const reasons = [...text.matchAll(/reason="([a-z-]+)"/g)].map(([, reason]) => reason);
  for (const reason of reasons) expect(operationsPage).toContain(`\`${reason}\``);
});

test('every command line there is understood', async () => {
  const table = commands.map((entry) => ({ ...entry, load: async () => async () => 0 }));
  const lines = `${pages}${readme}`.matchAll(/^(?:\$ )?incumbent-redis (.*?)(?: +#.*| \|.*)?$/gm);
  let count = 0;
  for (const [line, words = ''] of lines) {
    expect(await invoke(words.split(' '), { table }), line).toMatchObject({ code: 0 });
    count += 1;
  }
  expect(count).toBeGreaterThan(10);
});
