/** The answer of /metrics: the elections of this process, for Prometheus. */
import { collectMetrics } from 'incumbent/metrics';
import { Gauge, Registry } from 'prom-client';
import { readVersion } from '../terminal/main.ts';

export interface ServedMetrics {
  readonly contentType: string;
  text(): Promise<string>;
  close(): void;
}

/** The shards of one set that this process owns now. */
export interface OwnedShards {
  readonly name: string;
  readonly count: () => number;
}

/** Call it before the campaign begins: what happened before is not counted. */
export async function serveMetrics(owned?: OwnedShards): Promise<ServedMetrics> {
  const version = await readVersion();
  const registry = new Registry();
  const handle = collectMetrics(registry, {
    // A process that joins again may have another slot. The first one would look as if nobody led.
    ...(owned !== undefined && {
      election: (name) => (name.startsWith(`${owned.name}/`) ? `${owned.name}/slot` : name),
    }),
  });
  const build = new Gauge({
    name: 'incumbent_build_info',
    help: 'Always 1',
    labelNames: ['version'],
    registers: [registry],
  });
  build.set({ version }, 1);
  if (owned !== undefined) {
    new Gauge({
      name: 'incumbent_shards_owned',
      help: 'Shards that this process owns now',
      labelNames: ['shards'],
      registers: [registry],
      collect() {
        this.set({ shards: owned.name }, owned.count());
      },
    });
  }
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    close: () => handle.close(),
  };
}
