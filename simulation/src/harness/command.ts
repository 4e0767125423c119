import type { AdminResult, Drain, Election, LeaderRequest } from 'incumbent';

/** A request of an operator. */
export type Command =
  | { readonly kind: 'vacate'; readonly force?: boolean }
  | { readonly kind: 'transfer'; readonly to: string }
  | { readonly kind: 'drain'; readonly id: string; readonly until: Date }
  | { readonly kind: 'lift'; readonly id: string }
  | { readonly kind: 'end' }
  | { readonly kind: 'reopen' };

export function perform(election: Election<unknown>, command: Command): Promise<AdminResult> {
  switch (command.kind) {
    case 'vacate':
      return election.vacate({ force: command.force ?? false });
    case 'transfer':
      return election.transfer(command.to);
    case 'drain':
      return election.drain(command.id, command.until);
    case 'lift':
      return election.drain(command.id, new Date(0));
    case 'end':
      return election.end();
    case 'reopen':
      return election.reopen();
    default:
      return command satisfies never;
  }
}

/** For people who read a trace. */
export function describeCommand(command: Command): string {
  if (command.kind === 'lift') return 'lift a drain';
  return command.kind === 'vacate' && command.force === true ? 'vacate by force' : command.kind;
}

/**
 * Whether a record grants the request, for those commands that stand in it until somebody takes
 * them back. The other commands stand as long as the term that they were meant for.
 */
export function isGranted(
  command: Command,
  record: { readonly ended: boolean; readonly drains: readonly Drain[] } | undefined,
  wallMs: number,
): boolean {
  const drains = record?.drains ?? [];
  switch (command.kind) {
    case 'drain': {
      const untilMs = command.until.getTime();
      const standing = drains.find(({ id }) => id === command.id);
      // One that is over by the operator's clock takes another one back.
      return standing === undefined ? untilMs <= wallMs : standing.untilUnixMs === untilMs;
    }
    case 'lift':
      return drains.every(({ id }) => id !== command.id);
    case 'end':
      return record?.ended === true;
    case 'reopen':
      return record?.ended !== true;
    case 'vacate':
    case 'transfer':
      return true;
    default:
      return command satisfies never;
  }
}

/** The orders that operators have left in a record. */
export interface OperatorState {
  readonly token: bigint;
  readonly holding:
    | { readonly request: LeaderRequest | undefined; readonly revoked: boolean }
    | undefined;
  readonly drains: readonly Drain[];
  readonly ended: boolean;
}

export interface Drop {
  readonly what: 'a drain' | 'the end' | 'a request' | 'the revocation';
  /** Whom a drain keeps out. */
  readonly id?: string;
}

/** For so long after it is over a drain stays: clocks differ, and it may count for others still. */
const drainKeptMs = 86_400_000;

/**
 * An order of operators that a later record lacks, although it is not long over by the clock of the
 * writer that has dropped it.
 */
export function dropsOf(
  before: OperatorState | undefined,
  after: OperatorState,
  wallMs: number,
): Drop | undefined {
  if (before === undefined) return undefined;
  for (const { id, untilUnixMs } of before.drains) {
    const isThere = after.drains.some(
      (drain) => drain.id === id && drain.untilUnixMs === untilUnixMs,
    );
    if (!isThere && untilUnixMs + drainKeptMs > wallMs) return { what: 'a drain', id };
  }
  if (before.ended && !after.ended) return { what: 'the end' };
  if (before.holding === undefined || after.holding === undefined) return undefined;
  if (before.token !== after.token) return undefined;
  const { request, revoked } = before.holding;
  if (request !== undefined && request.nonce !== after.holding.request?.nonce) {
    return { what: 'a request' };
  }
  return revoked && !after.holding.revoked ? { what: 'the revocation' } : undefined;
}

/** Whether an operator who gives this command may drop that. */
export function takesBack(command: Command, { what, id }: Drop): boolean {
  if (what === 'the end') return command.kind === 'reopen';
  if (what === 'a request') return command.kind === 'vacate' || command.kind === 'transfer';
  return what === 'a drain' && 'id' in command && command.id === id;
}
