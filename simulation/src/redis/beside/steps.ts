import type { GivenSettings } from '../settings.ts';
import type { Layout } from './layout.ts';
import { calm } from './layout.ts';

/** An act on three nodes, on both sides alike. */
export type Step =
  | { readonly type: 'command'; readonly node: number; readonly parts: readonly string[] }
  /** A command on a connection of its own, whose reply is not waited for. */
  | {
      readonly type: 'block';
      readonly node: number;
      readonly parts: readonly string[];
      /** Sent right before it, so that nothing comes in between. */
      readonly first?: readonly (readonly string[])[];
    }
  | { readonly type: 'start'; readonly node: number }
  /** SIGKILL. */
  | { readonly type: 'kill'; readonly node: number }
  /** SIGTERM. */
  | { readonly type: 'stop'; readonly node: number }
  | { readonly type: 'pause'; readonly node: number }
  | { readonly type: 'resume'; readonly node: number }
  | { readonly type: 'lose-data'; readonly node: number }
  /** Its configuration file, while it does not run. */
  | { readonly type: 'configure'; readonly node: number; readonly settings: GivenSettings }
  /** The way between a replica and its primary. */
  | { readonly type: 'link'; readonly from: number; readonly to: number; readonly how: LinkFault }
  /** Some PINGs to its replicas: as many as the server sends until it is told to end it. */
  | { readonly type: 'pings'; readonly node: number }
  /** A copy that it begins from now on is never done, and neither is a rewrite of its append-only file. */
  | { readonly type: 'slow-copies'; readonly node: number; readonly areSlow: boolean }
  /** Until all replicas have reported what they have. */
  | { readonly type: 'settle' };

export type LinkFault =
  | 'pass'
  /** Connections are reset, and new ones refused. */
  | 'refuse'
  /** Nothing comes from the primary. */
  | 'hold-replies'
  /** Nothing comes to the primary. */
  | 'hold-requests';

/** @param ways to say in letters whom a node is to follow */
export function show(step: Step, ways: Layout['ways']): string {
  if (step.type === 'settle') return 'all replicas report';
  if (step.type === 'link') return `link ${name(step.from)} → ${name(step.to)}: ${step.how}`;
  if ('settings' in step) return `${name(step.node)} ${step.type}: ${showSettings(step.settings)}`;
  if (step.type === 'slow-copies') {
    return `${name(step.node)} copies ${step.areSlow ? 'slowly' : 'fast'}`;
  }
  if (!('parts' in step)) return `${name(step.node)} ${step.type}`;
  const words = step.parts.map((part) =>
    part.length > 60 ? `${part.slice(0, 8)}… (${part.length})` : part,
  );
  const way = ways.find(({ port }) => words[0] === 'REPLICAOF' && words[2] === `${port}`);
  const command = way === undefined ? words.join(' ') : `REPLICAOF ${name(way.to)}`;
  if (step.type === 'command') return `${name(step.node)} ${command}`;
  const first = (step.first ?? []).map((parts) => `${parts.join(' ')}; `).join('');
  return `${name(step.node)} waits for ${first}${command}`;
}

/** The settings that differ from the calm ones. */
export function showSettings(settings: GivenSettings): string {
  const calmly = calm as Readonly<Record<string, string>>;
  return Object.entries(settings)
    .filter(([setting, value]) => calmly[setting] !== value)
    .map(([setting, value]) => `${setting} ${value === '' ? '""' : value}`)
    .join(', ');
}

export function name(node: number): string {
  return 'abc'[node] ?? `${node}`;
}
