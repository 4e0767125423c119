import { NotElectedError } from '../base/errors.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import { anyOf, bounded, sleep } from '../base/wait.ts';
import type { Campaign } from './campaign.ts';
import type { Scope, Snapshot, WaitMode } from './contest.ts';
import type { HeldTerm } from './held-term.ts';
import type { ResolvedCampaign } from './options.ts';

interface Around {
  readonly scope: Scope;
  /** Looks at the store once. */
  readonly inspect: (signal: AbortSignal) => Promise<Snapshot>;
  readonly signal: AbortSignal;
}

/**
 * Waits for the next term of a campaign.
 * @throws NotElectedError after `waitMs`
 */
export function nextTerm<Guard>(
  campaign: Campaign<Guard>,
  { waitMs, settles }: ResolvedCampaign,
  around: Around,
): Promise<HeldTerm<Guard>> {
  // Another async function here would cost half a KiB for each candidate that waits.
  if (waitMs === undefined) return campaign.next('wait', around.signal);
  if (waitMs === 0) return nextAtOnce(campaign, settles ? 'settle' : 'none', around);
  return nextWithin(campaign, waitMs, around);
}

async function nextAtOnce<Guard>(
  campaign: Campaign<Guard>,
  waitMode: WaitMode,
  { scope, signal }: Around,
): Promise<HeldTerm<Guard>> {
  const term = await campaign.next(waitMode, signal);
  if (term === undefined) throw refusal(campaign.whyNot, 0, scope);
  return term;
}

async function nextWithin<Guard>(
  campaign: Campaign<Guard>,
  waitMs: number,
  around: Around,
): Promise<HeldTerm<Guard>> {
  const { scope, signal } = around;
  const bound = new AbortController();
  const [stop, forget] = anyOf(signal, bound.signal);
  const timer = new AbortController();
  sleep(scope.clock, waitMs, timer.signal).then(
    () => bound.abort(refusal(campaign.whyNot, waitMs, scope)),
    () => {},
  );
  try {
    return await campaign.next('wait', stop);
  } catch (error) {
    if (!bound.signal.aborted || error !== bound.signal.reason) throw error;
    throw refusal(await whoLeadsNow(campaign.whyNot, around), waitMs, scope);
  } finally {
    timer.abort();
    forget();
  }
}

function refusal(why: NotElectedReason, waitMs: number, { election, clock }: Scope) {
  return new NotElectedError(election, waitMs, why, clock.wallMs());
}

/** A candidate that waits in a queue is not told of every new leader, so this asks the store. */
async function whoLeadsNow(
  known: NotElectedReason,
  { scope, inspect, signal }: Around,
): Promise<NotElectedReason> {
  if (known.kind !== 'led') return known;
  const { clock, timing } = scope;
  try {
    const { view } = await bounded(clock, 'looking', timing.operationTimeoutMs, signal, inspect);
    const { leader, token } = view;
    if (view.state !== 'led' || leader === undefined) return known;
    const { seats } = known;
    return {
      ...{ kind: 'led', id: leader.id },
      ...(token !== undefined && { token }),
      ...(seats !== undefined && { seats }),
    };
  } catch {
    return known;
  }
}
