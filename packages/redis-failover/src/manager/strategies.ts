/**
 * How the reports of all managers become verdicts, and who is promoted. Pure: what they say is all that
 * counts here.
 */
import type { Report } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { NodeStrategy } from './options.ts';

export type Reports = ReadonlyMap<string, Report>;

/** What all managers together say of a node. */
export interface Verdict {
  readonly state: 'available' | 'unavailable';
  /** Ids of managers. One that does not report on the node is in neither. */
  readonly availableTo: readonly string[];
  readonly unavailableTo: readonly string[];
}

/** A node that nobody reports on is `available`, as the gem has it: nothing is done because of it. */
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

/** Whether a node is down when so many managers say that it is, and so many that it is not. */
const rules: Readonly<Record<NodeStrategy, (down: number, up: number) => boolean>> = {
  majority: (down, up) => down > up,
  consensus: (down, up) => down > 0 && up === 0,
  single: (down) => down > 0,
};

/** Whether as many managers as are required report on a node, up or down. */
export function hasEnoughReports(required: number, node: NodeAddress, reports: Reports): boolean {
  const { availableTo, unavailableTo } = judge('single', node, reports);
  return new Set([...availableTo, ...unavailableTo]).size >= required;
}

/** A replica that can be promoted. */
export interface Candidate {
  readonly address: NodeAddress;
  /** Of writes, all of one history. */
  readonly offset: number;
  /** Mean of what the managers report; infinite when none does. */
  readonly latencyMs: number;
  /** How many managers do not see it (default 0). */
  readonly unavailableTo?: number | undefined;
  /** `replica-priority` (default 100); a lower one is preferred, as Sentinel has it. */
  readonly priority?: number | undefined;
}

/**
 * The best first: who has the most of the data, as any other loses some; who is seen by most
 * managers; then priority, latency, and the address, so that the order is always the same one. The
 * gem's strategy `latency` knows nothing of offsets, and takes only who is seen by all.
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

/** Infinities too, of which the difference is no number. */
function compare<Value extends number | string>(a: Value, b: Value): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
