/** The metrics of a manager, for Prometheus. */

import type { ManagerEvent, ManagerStatus, MoveReason } from '@incumbent/redis-failover';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { whyNotReady } from './health.ts';

const prefix = 'incumbent_redis_';
const reasons: Readonly<Record<MoveReason, true>> = {
  down: true,
  request: true,
  unfinished: true,
  found: true,
  'lost-role': true,
  'lost-data': true,
  keep: true,
};

export class Metrics {
  readonly #registry = new Registry();
  readonly #failovers: Counter<'outcome' | 'reason'>;
  readonly #lastSeconds: Gauge;
  readonly #lastAt: Gauge;

  /** @param status asked at each scrape */
  constructor(version: string, status: () => ManagerStatus) {
    collectDefaultMetrics({ register: this.#registry });
    this.#gauge('build_info', 'Always 1', (set) => set(1, { version }), ['version']);
    this.#describe(status);
    this.#describeNodes(status);
    this.#failovers = new Counter({
      name: `${prefix}failovers_total`,
      help: 'Moves of the primary that this manager has tried, by outcome and reason',
      labelNames: ['outcome', 'reason'],
      registers: [this.#registry],
    });
    for (const reason of Object.keys(reasons)) {
      for (const outcome of ['done', 'failed']) this.#failovers.inc({ outcome, reason }, 0);
    }
    this.#lastSeconds = this.#single(
      'last_failover_seconds',
      'How long the last move of the primary by this manager took',
    );
    this.#lastAt = this.#single(
      'last_failover_timestamp_seconds',
      'When the last move of the primary by this manager was done (Unix time)',
    );
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  count(event: ManagerEvent): void {
    if (event.type === 'moved') {
      this.#failovers.inc({ outcome: 'done', reason: event.reason });
      this.#lastSeconds.set(event.tookMs / 1000);
      this.#lastAt.set(Math.round(Date.now() / 1000));
    } else if (event.type === 'move-failed') {
      this.#failovers.inc({ outcome: 'failed', reason: event.reason });
    }
  }

  #describe(status: () => ManagerStatus): void {
    const flag = (condition: boolean) => (condition ? 1 : 0);
    this.#gauge('leading', 'Whether this manager is the elected one', (set) =>
      set(flag(status().state === 'leading')),
    );
    this.#gauge('ready', 'Whether /readyz answers 200', (set) =>
      set(flag(whyNotReady(status()) === undefined)),
    );
    this.#gauge('zookeeper_connected', 'Whether the session with ZooKeeper is usable', (set) =>
      set(flag(status().zookeeper === 'connected')),
    );
    this.#gauge('managers', 'Managers that report, this one included', (set) =>
      set(status().managers),
    );
    this.#gauge('managers_required', 'Managers that must report before anything is done', (set) =>
      set(status().requiredManagers),
    );
    this.#gauge('primary_term', 'Counts the primaries: one more at each move', (set) => {
      const { term } = status();
      if (term !== undefined) set(term);
    });
    this.#gauge(
      'trouble',
      'Why nothing is done at the moment, 1 for its code; absent when all is well',
      (set) => {
        const { trouble } = status();
        if (trouble !== undefined) set(1, { code: trouble.code });
      },
      ['code'],
    );
  }

  #describeNodes(status: () => ManagerStatus): void {
    const ofNodes = (
      name: string,
      help: string,
      value: (node: ManagerStatus['nodes'][number], all: ManagerStatus) => number | undefined,
    ) =>
      this.#gauge(
        name,
        help,
        (set) => {
          const all = status();
          for (const node of all.nodes) {
            const found = value(node, all);
            if (found !== undefined) set(found, { node: node.address });
          }
        },
        ['node'],
      );
    const upOr = (state: 'unknown' | 'available' | 'unavailable' | undefined) =>
      state === undefined || state === 'unknown' ? undefined : state === 'available' ? 1 : 0;
    ofNodes('node_up', 'Whether this manager reaches the node', ({ state }) => upOr(state));
    ofNodes(
      'node_judged_up',
      'Whether the node is up to all managers together; told by the elected one only',
      ({ judged }) => upOr(judged),
    );
    ofNodes(
      'node_quarantined',
      'Whether the node is set aside until an operator decides; told by the elected one only',
      ({ address }, all) =>
        all.state === 'leading' ? Number(all.quarantined.includes(address)) : undefined,
    );
    ofNodes('node_primary', 'Whether the node is the primary by the record', ({ address }, all) =>
      all.primary === undefined ? undefined : address === all.primary ? 1 : 0,
    );
    ofNodes(
      'node_failures',
      'Failures in a row, as this manager counts',
      ({ failures }) => failures,
    );
    ofNodes('node_latency_seconds', 'How long the node took to answer', ({ latencyMs }) =>
      latencyMs === undefined ? undefined : latencyMs / 1000,
    );
  }

  #gauge(
    name: string,
    help: string,
    collect: (set: (value: number, labels?: Record<string, string>) => void) => void,
    labelNames: readonly string[] = [],
  ): void {
    new Gauge({
      name: `${prefix}${name}`,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        this.reset();
        // Without labels `reset` leaves a 0 behind, which would be a value.
        if (labelNames.length === 0) this.remove();
        collect((value, labels = {}) => this.set(labels, value));
      },
    });
  }

  /** Absent before the first. */
  #single(name: string, help: string): Gauge {
    const gauge = new Gauge({ name: `${prefix}${name}`, help, registers: [this.#registry] });
    gauge.remove();
    return gauge;
  }
}
