/** The answer of /metrics: the elections of this process, for Prometheus. */
import { collectMetrics } from 'incumbent/metrics';
import { Gauge, Registry } from 'prom-client';
import { readVersion } from '../terminal/main.ts';

export interface ServedMetrics {
  readonly contentType: string;
  text(): Promise<string>;
  close(): void;
}

/** Call it before the campaign begins: what happened before is not counted. */
export async function serveMetrics(): Promise<ServedMetrics> {
  const version = await readVersion();
  const registry = new Registry();
  const handle = collectMetrics(registry);
  const build = new Gauge({
    name: 'incumbent_build_info',
    help: 'Always 1',
    labelNames: ['version'],
    registers: [registry],
  });
  build.set({ version }, 1);
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    close: () => handle.close(),
  };
}
