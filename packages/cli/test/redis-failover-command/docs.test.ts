import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commands } from '../../src/redis-failover-command/command-table.ts';
import { allSettings } from '../../src/redis-failover-command/config/settings.ts';
import { parseConfiguration } from '../../src/redis-failover-command/config/yaml-file.ts';
import { Metrics } from '../../src/redis-failover-command/manage/metrics.ts';
import { FakeManager } from './fake-manager.ts';
import { invoke } from './invoke.ts';

const page = readFileSync(
  new URL('../../../../docs/reference/redis-failover.md', import.meta.url),
  'utf8',
);
const readme = readFileSync(new URL('../../../redis-failover/README.md', import.meta.url), 'utf8');

test.each(commands.map(({ name }) => name))(
  'docs/reference/redis-failover.md has a section on `%s`, an example and every option',
  async (name) => {
    expect(page).toMatch(new RegExp(`^### ${name}$`, 'm'));
    expect(page).toMatch(new RegExp(`^incumbent-redis ${name}\\b`, 'm'));
    const { stdout } = await invoke([name, '--help']);
    for (const [option] of stdout.matchAll(/(?<=^ {2}(?:-\w, )?)--[a-z-]+/gm)) {
      if (option !== '--help') expect(page).toContain(`\`${option}\``);
    }
  },
);

test('it has every key and every variable', () => {
  for (const { key, variable } of allSettings) {
    expect(page).toContain(`\`${key}\``);
    if (variable !== undefined) expect(page).toContain(`\`${variable}\``);
  }
});

test('its configuration is one that is understood', () => {
  const yaml = /```yaml\n(.*?)```/s.exec(page)?.[1] ?? '';
  const production = parseConfiguration(yaml, 'redis.yml', 'production');
  expect(production.get('required_node_managers')?.value).toBe(2);
  expect(production.get('password_file')?.value).toBe('/run/secrets/redis');
  const staging = parseConfiguration(yaml, 'redis.yml', 'staging');
  expect(staging.get('root')?.value).toBe('/redis_failover_staging');
});

test('it has every metric', async () => {
  const manager = new FakeManager({ nodes: ['a:1'], zookeeper: 'h' });
  const text = await new Metrics('0', () => manager.status).text();
  const names = [...text.matchAll(/^# TYPE (incumbent_redis_\w+)/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) expect(page).toMatch(new RegExp(`\`${name}[\`{]`));
  const reasons = [...text.matchAll(/reason="([a-z-]+)"/g)].map(([, reason]) => reason);
  for (const reason of reasons) expect(page).toContain(`\`${reason}\``);
});

test('every command line there is understood', async () => {
  const table = commands.map((entry) => ({ ...entry, load: async () => async () => 0 }));
  const lines = `${page}${readme}`.matchAll(/^(?:\$ )?incumbent-redis (.*?)(?: +#.*| \|.*)?$/gm);
  let count = 0;
  for (const [line, words = ''] of lines) {
    expect(await invoke(words.split(' '), { table }), line).toMatchObject({ code: 0 });
    count += 1;
  }
  expect(count).toBeGreaterThan(10);
});
