/**
 * Turns the reports of all managers into verdicts, and ranks the candidates for a promotion. Pure
 * functions of the reports.
 */
import type { Report } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { NodeStrategy } from './options.ts';

export type Reports = ReadonlyMap<string, Report>;

/** The common verdict of all managers on a node. */
export interface Verdict {
  readonly state: 'available' | 'unavailable';
  /** Ids of managers. A manager that does not report on the node is in neither list. */
  readonly availableTo: readonly string[];
  readonly unavailableTo: readonly string[];
}

/** A node without reports is `available`, as in the gem: nothing is done because of it. */
export function judge(strategy: NodeStrategy, node: NodeAddress, reports: Reports): Verdict {
  const availableTo: string[] = [];
  const unavailableTo: string[] = [];
  for (const [manager, { available, unavailable }] of reports) {
    if (Object.hasOwn(available, node)) availableTo.push(manager);
    if (unavailable.includes(node)) unavailableTo.push(manager);
  }
  const isDown = rules[strategy](unavailableTo.length, availableTo.length);
  return { state: isDown ? 'unavailable' : 'available', availableTo, unavailableTo };
}

/**
 * For each strategy: whether a node is down, by the number of managers that say so and that deny
 * it.
 */
const rules: Readonly<Record<NodeStrategy, (down: number, up: number) => boolean>> = {
  majority: (down, up) => down > up,
  consensus: (down, up) => down > 0 && up === 0,
  single: (down) => down > 0,
};

/** Whether at least the required number of managers report on a node, up or down. */
export function hasEnoughReports(required: number, node: NodeAddress, reports: Reports): boolean {
  const { availableTo, unavailableTo } = judge('single', node, reports);
  return new Set([...availableTo, ...unavailableTo]).size >= required;
}

/** A node that may be promoted. */
export interface Candidate {
  readonly address: NodeAddress;
  /** Its offset in the stream of writes. All candidates are in the same stream. */
  readonly offset: number;
  /** The mean of the managers' reports; infinite without one. */
  readonly latencyMs: number;
  /** How many managers do not see it (default 0). */
  readonly unavailableTo?: number | undefined;
  /** `replica-priority` (default 100). A lower number is preferred, as in Sentinel. */
  readonly priority?: number | undefined;
}

/**
 * Sorts candidates, the best first. The most data come first, because every other choice loses
 * some. Then: seen by most managers, priority, latency. The address decides last, so that the order
 * is always the same. The gem's strategy `latency` ignores offsets, and takes only nodes that all
 * managers see.
 */
export function rankCandidates<Each extends Candidate>(candidates: readonly Each[]): Each[] {
  return [...candidates].sort(
    (a, b) =>
      b.offset - a.offset ||
      (a.unavailableTo ?? 0) - (b.unavailableTo ?? 0) ||
      (a.priority ?? 100) - (b.priority ?? 100) ||
      compare(a.latencyMs, b.latencyMs) ||
      compare(a.address, b.address),
  );
}

/** Infinite latencies have no difference that is a number, so they are compared. */
function compare<Value extends number | string>(a: Value, b: Value): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
