import type { Environment } from './context.ts';
import { systemProbe } from './environment.ts';
import type { ServerKind, ServerUrl } from './store-url.ts';
import { locateStore } from './store-url.ts';

/**
 * A value of `--store` in the form that people are shown, and that a history has on file: without secrets.
 * Asks no server, and loads no client.
 * @param option undefined: the store that commands use without `--store`
 * @throws CommandError
 */
export async function shownUrl(
  option: string | undefined,
  { env, cwd, platform }: { env: Environment; cwd: string; platform: NodeJS.Platform },
): Promise<string> {
  const location = locateStore(option, cwd, systemProbe(env, platform));
  if (location.scheme === 'file') return location.url;
  const { url } = await parsers[location.scheme](location.text, location.origin, env);
  return url;
}

type Parser = (
  text: string,
  origin: ServerUrl['origin'],
  env: Environment,
) => Promise<{ readonly url: string }>;

const parsers: Readonly<Record<ServerKind, Parser>> = {
  zookeeper: async (text, origin) =>
    (await import('./zookeeper/url.ts')).parseZooKeeperUrl(text, origin),
  redis: async (text, origin, env) =>
    (await import('./redis/url.ts')).parseRedisUrl(text, origin, env),
  kubernetes: async (text, origin) =>
    (await import('./kubernetes/url.ts')).parseKubernetesUrl(text, origin),
  postgres: async (text, origin, env) =>
    (await import('./postgres/url.ts')).parsePostgresUrl(text, origin, env),
  etcd: async (text, origin, env) =>
    (await import('./etcd/url.ts')).parseEtcdUrl(text, origin, env),
  s3: async (text, origin) => (await import('./s3/url.ts')).parseS3Url(text, origin),
  gcs: async (text, origin) => (await import('./gcs/url.ts')).parseGcsUrl(text, origin),
};
