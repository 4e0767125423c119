/**
 * The rule for replies, against a world in which everything may happen. Clocks step, hosts are
 * suspended, and frozen primaries execute what they find when they go on. Replies and confirmations
 * are late. Each write that a client counts as done must have been executed before the next primary
 * was promoted, because a later one may be lost.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BrokenRule, Proposal, Reign } from '../../src/client/view.ts';
import { View } from '../../src/client/view.ts';
import type { Nodes, PrimaryRecord } from '../../src/layout.ts';

const viewMs = 1_000;

type Step =
  | { readonly do: 'pass' | 'suspend' | 'step the wall clock'; readonly ms: number }
  | {
      readonly do:
        | 'revoke'
        | 'promote'
        | 'read'
        | 'ask'
        | 'commit'
        | 'hear'
        | 'write'
        | 'execute'
        | 'reply';
    };

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.integer({ min: 1, max: 700 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('suspend' as const),
      ms: fc.integer({ min: 1, max: 5_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('step the wall clock' as const),
      ms: fc.integer({ min: -5_000, max: 5_000 }),
    }),
  },
  ...(
    ['revoke', 'promote', 'read', 'ask', 'commit', 'hear', 'write', 'execute', 'reply'] as const
  ).map((name) => ({ weight: 3, arbitrary: fc.constant({ do: name }) })),
);

interface Write {
  readonly reign: Reign;
  executedAtMs: number | undefined;
}

interface Held {
  readonly write: Write;
  readonly arrivedAt: { readonly monotonicMs: number; readonly wallMs: number };
}

/**
 * The write that was executed too late and acknowledged all the same; undefined if there was none.
 */
function live(script: readonly Step[], broken: readonly BrokenRule[] = []): string | undefined {
  const view = new View({ rubyViewMs: 9_000, safeMode: true, broken });
  let timeMs = 10_000;
  let monotonicMs = 10_000;
  let wallMs = 10_000;
  const now = () => ({ monotonicMs, wallMs });
  // ZooKeeper.
  let term = 1;
  let primary: string | null = 'node 1';
  let version = 0;
  let revokedAtMs = Number.NaN;
  const promotedAtMs = new Map<number, number>();
  // Confirmations, one at a time: sent, committed or refused, received.
  let asked:
    | { proposal: Proposal; sentAt: ReturnType<typeof now>; ok: boolean | undefined }
    | undefined;
  const writes: Write[] = [];
  let held: Held[] = [];

  const judge = ({ reign, executedAtMs }: Write, verdict: string): string | undefined => {
    const next = promotedAtMs.get((reign.term ?? 0) + 1);
    if (verdict !== 'acknowledged' || next === undefined || (executedAtMs ?? 0) < next) return;
    return `executed at ${executedAtMs} in term ${reign.term}, whose successor was promoted at ${next}`;
  };
  for (const step of script) {
    switch (step.do) {
      case 'pass':
        timeMs += step.ms;
        monotonicMs += step.ms;
        wallMs += step.ms;
        break;
      case 'suspend':
        timeMs += step.ms;
        wallMs += step.ms;
        break;
      case 'step the wall clock':
        wallMs += step.ms;
        break;
      case 'revoke':
        if (primary === null) break;
        primary = null;
        version += 1;
        revokedAtMs = timeMs;
        break;
      case 'promote':
        if (primary !== null || timeMs < revokedAtMs + viewMs) break;
        term += 1;
        primary = `node ${term % 2}`;
        version += 1;
        promotedAtMs.set(term, timeMs);
        break;
      case 'read': {
        const rest = {
          former: null,
          viewMs,
          manager: 'm',
          token: '1',
          manualSeen: '0',
          replicationId: null,
          runId: null,
          gemViews: false,
        };
        const value: PrimaryRecord = { term, primary, ...rest };
        const names: Nodes = { master: primary, slaves: [], unavailable: [] };
        view.seeRecord({ value, version, createdZxid: 1n, modifiedZxid: BigInt(version) });
        view.seeNodes(
          primary === null
            ? undefined
            : {
                value: names,
                version,
                createdZxid: BigInt(version),
                modifiedZxid: BigInt(version),
              },
        );
        break;
      }
      case 'ask': {
        const { proposal } = view;
        if (asked === undefined && proposal !== undefined)
          asked = { proposal, sentAt: now(), ok: undefined };
        break;
      }
      case 'commit':
        if (asked !== undefined) asked.ok ??= asked.proposal.recordVersion === version;
        break;
      case 'hear':
        if (asked?.ok === undefined) break;
        if (asked.ok) view.confirmed(asked.proposal, asked.sentAt);
        asked = undefined;
        break;
      case 'write': {
        const reign = view.usable(now());
        if (reign !== undefined) writes.push({ reign, executedAtMs: undefined });
        break;
      }
      case 'execute': {
        const write = writes.find(({ executedAtMs }) => executedAtMs === undefined);
        if (write !== undefined) write.executedAtMs = timeMs;
        break;
      }
      case 'reply': {
        const at = writes.findIndex(({ executedAtMs }) => executedAtMs !== undefined);
        const [write] = at < 0 ? [] : writes.splice(at, 1);
        if (write === undefined) break;
        const arrivedAt = now();
        const verdict = view.judgeArrival(write.reign, arrivedAt, 0);
        const wrong = judge(write, verdict);
        if (wrong !== undefined) return wrong;
        if (verdict === 'held') held.push({ write, arrivedAt });
        break;
      }
      default:
        step satisfies never;
    }
    // A look, as the client takes one at each confirmation, and while it waits for the next
    // primary.
    view.usable(now());
    const still: Held[] = [];
    for (const each of held) {
      const verdict = view.judgeHeld(each.write.reign, each.arrivedAt);
      const wrong = judge(each.write, verdict);
      if (wrong !== undefined) return wrong;
      if (verdict === 'held') still.push(each);
    }
    held = still;
  }
  return undefined;
}

/** A beginning that makes most scripts reach the interesting states. */
const begin: readonly Step[] = [
  { do: 'read' },
  { do: 'ask' },
  { do: 'commit' },
  { do: 'hear' },
  { do: 'write' },
];
const scripts = fc.array(steps, { minLength: 5, maxLength: 60 }).map((rest) => [...begin, ...rest]);

/**
 * A host that was suspended after it had read the revocation, and a wall clock that was set back at
 * that time.
 */
const suspendedThenSetBack: readonly Step[] = [
  ...begin,
  { do: 'revoke' },
  { do: 'read' },
  { do: 'suspend', ms: 962 },
  { do: 'pass', ms: 38 },
  { do: 'step the wall clock', ms: -500 },
  { do: 'execute' },
  { do: 'promote' },
  { do: 'pass', ms: 1 },
  { do: 'reply' },
];

test('what is acknowledged was executed before the next primary was promoted', () => {
  fc.assert(
    fc.property(scripts, (script) => {
      expect(live(script)).toBe(undefined);
    }),
    { numRuns: 3_000, examples: [[[...suspendedThenSetBack]]] },
  );
});

for (const rule of ['no-reply-rule', 'no-view'] as const) {
  test(`which would be found out if it were not so (${rule})`, () => {
    const { failed } = fc.check(
      fc.property(scripts, (script) => live(script, [rule]) === undefined),
      { numRuns: 20_000 },
    );
    expect(failed).toBe(true);
  });
}
