import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commands } from '../src/command-table.ts';
import { etcdParameters, parseEtcdUrl } from '../src/etcd/url.ts';
import { gcsParameters, parseGcsUrl } from '../src/gcs/url.ts';
import { kubernetesParameters, parseKubernetesUrl } from '../src/kubernetes/url.ts';
import { parsePostgresUrl, postgresParameters } from '../src/postgres/url.ts';
import { parseRedisUrl, redisParameters } from '../src/redis/url.ts';
import { parseS3Url, s3Parameters } from '../src/s3/url.ts';
import { parameterNames } from '../src/zookeeper/parameters.ts';
import { parseZooKeeperUrl } from '../src/zookeeper/url.ts';
import { invoke } from './support/invoke.ts';

const reference = new URL('../../../docs/reference/', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, reference), 'utf8');
/** The overview, and the pages of one topic each. */
const pages = [
  read('cli.md'),
  ...readdirSync(new URL('cli/', reference)).map((name) => read(`cli/${name}`)),
].join('\n');
const storesPage = read('cli/stores.md');

test.each(commands.map(({ name }) => name))(
  'the pages of the command have a section on `%s`, an example and every option',
  async (name) => {
    expect(pages).toMatch(new RegExp(`^(## ${name}|# \`incumbent ${name}\`)$`, 'm'));
    expect(pages).toMatch(new RegExp(`^(\\$ )?incumbent ${name}\\b`, 'm'));
    const { stdout } = await invoke([name, '--help']);
    const options = stdout.match(/^ {2}(?:-\w, )?--[a-z-]+/gm) ?? [];
    for (const option of options) {
      const long = option.replace(/^.*--/, '--');
      if (long !== '--help') expect(pages).toContain(long);
    }
  },
);

/** Each store, and the section of the page on stores. */
const stores = [
  [
    'PostgreSQL',
    postgresParameters,
    /postgres(?:ql)?:\/\//,
    (url: string) => parsePostgresUrl(url, '--store', {}),
  ],
  ['Redis', redisParameters, /rediss?:\/\//, (url: string) => parseRedisUrl(url, '--store', {})],
  ['etcd', etcdParameters, /etcds?:\/\//, (url: string) => parseEtcdUrl(url, '--store', {})],
  [
    'Kubernetes',
    kubernetesParameters,
    /k8s:\/\//,
    (url: string) => parseKubernetesUrl(url, '--store'),
  ],
  ['Cloud Storage', gcsParameters, /gs:\/\//, (url: string) => parseGcsUrl(url, '--store')],
  ['S3', s3Parameters, /s3:\/\//, (url: string) => parseS3Url(url, '--store')],
  ['ZooKeeper', parameterNames, /zks?:\/\//, (url: string) => parseZooKeeperUrl(url, '--store')],
] as const;

test.each(stores)(
  'docs/reference/cli/stores.md has every parameter of a URL of %s, and each URL of the pages is understood',
  (name, parameters, scheme, parse) => {
    const section =
      storesPage.split(/^(?=## )/m).find((each) => each.startsWith(`## ${name}\n`)) ?? '';
    for (const parameter of parameters)
      expect(section).toMatch(new RegExp(`^\\|.*\`${parameter}\`.*\\|`, 'm'));
    const urls = pages.match(new RegExp(`${scheme.source}[^'"\\s\`…)]*(?=['"\\s\`])`, 'g')) ?? [];
    expect(urls.length).toBeGreaterThan(1);
    for (const url of urls) expect(() => parse(url), url).not.toThrow();
  },
);

test('every example of a help is a command line that is understood', async () => {
  const table = commands.map((entry) => ({ ...entry, load: async () => async () => 0 }));
  for (const { examples } of commands) {
    for (const { line } of examples) {
      // Splits the line as a shell would, as far as the examples need it.
      const own = line.replace(/^.*\$\((.*)\).*$/, '$1').split(/ [|>]| >\/| \|\|/)[0] ?? '';
      const words = [...own.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);
      const at = words.indexOf('incumbent');
      expect(at).toBeGreaterThanOrEqual(0);
      const result = await invoke(words.slice(at + 1) as string[], { table });
      expect(result, line).toEqual({ code: 0, stdout: '', stderr: '' });
    }
  }
});
