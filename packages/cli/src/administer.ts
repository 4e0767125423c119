import type { AdminResult, Snapshot, View } from 'incumbent';
import type { OneSeat, Question } from './ask.ts';
import { ask, askWhatIsThere } from './ask.ts';
import type { Context, StoreNeeds } from './context.ts';
import { exitCodes } from './failure.ts';
import type { SeatQuestion } from './options.ts';
import { sinceOf, tokenOf } from './output/describe.ts';
import { toJson, visible } from './terminal/text.ts';

/** A request of an operator to an election. */
export interface Administration {
  /** `of` names the seat. */
  readonly request: (question: Question & Pick<OneSeat, 'of'>) => Promise<AdminResult>;
  /** The request concerns all seats. Default: the one of `--seat`. */
  readonly allSeats?: boolean;
  /** For people, on stdout. */
  readonly words: (result: AdminResult) => string;
  readonly details?: Readonly<Record<string, unknown>>;
  /** More fields of the JSON result. */
  readonly results?: (result: AdminResult) => object;
  /**
   * Runs before the request. Throws a refusal. Default: notes an election that has never been led.
   */
  readonly check?: (snapshot: Snapshot, question: Question) => Promise<void>;
  /** The request may create the election: the operator means a name that is not in use yet. */
  readonly makes?: boolean;
  /** The request opens an election again. Some stores make a removed one for it. */
  readonly reopens?: boolean;
  readonly needs?: Pick<StoreNeeds, 'setUp'>;
}

/** Puts an operator's request to the election and says what became of it. */
export async function administer(
  options: SeatQuestion,
  context: Context,
  { request, words, details, results, check, makes, reopens, needs, allSeats }: Administration,
): Promise<number> {
  const job = async (asked: Question) => {
    const { signal } = asked;
    const first = await asked.election.inspect({ signal });
    const { election, of } = allSeats
      ? { election: asked.allSeats(first.seats), of: {} }
      : asked.oneSeat(first.seats, options.seat);
    const question = { ...asked, election, of };
    const snapshot = (of.seat ?? 1) === 1 ? first : await election.inspect({ signal, ...of });
    if (!makes) await (check?.(snapshot, question) ?? question.noteNeverLed(snapshot.view));
    return request(question);
  };
  const answer = makes
    ? await ask(options, context, job, needs)
    : await askWhatIsThere(options, context, { tells: check === undefined, reopens }, job);
  // The term that was asked, and not one that came after it.
  const isAsked = answer.changed && answer.lifted === undefined;
  const result = isAsked ? { ...answer, view: answer.asked } : answer;
  const seat = options.seat !== undefined && { seat: options.seat };
  const line = options.json
    ? toJson({
        election: options.election,
        ...seat,
        ...details,
        ...asJson(result),
        ...results?.(result),
      })
    : visible(words(result));
  context.stdout.write(`${line}\n`);
  return exitCodes.ok;
}

/** `before`: the state in the record when the request was written. */
export function asJson({ changed, view }: Pick<AdminResult, 'changed' | 'view'>): object {
  const { state, leader } = view;
  return {
    changed,
    before: { state, leader: leader ?? null, token: tokenOf(view), since: sinceOf(view) },
  };
}

/** `"host-7" (token 12)`, for sentences. */
export function leaderWords({ leader, token }: View): string {
  // A seat that is held but not announced has a token and no leader yet.
  if (leader === undefined)
    return token === undefined ? 'the leader' : `the holder of token ${token}`;
  return `"${leader.id}"${token === undefined ? '' : ` (token ${token})`}`;
}
