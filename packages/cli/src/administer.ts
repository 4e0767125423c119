import type { AdminResult, Snapshot, View } from 'incumbent';
import type { Question } from './ask.ts';
import { ask, askWhatIsThere } from './ask.ts';
import type { Context, StoreNeeds } from './context.ts';
import { exitCodes } from './failure.ts';
import type { ElectionQuestion } from './options.ts';
import { sinceOf, tokenOf } from './output/describe.ts';
import { toJson, visible } from './terminal/text.ts';

/** What an operator asks of an election. */
export interface Administration {
  readonly request: (question: Question) => Promise<AdminResult>;
  /** For people, on stdout. */
  readonly words: (result: AdminResult) => string;
  readonly details?: Readonly<Record<string, unknown>>;
  /** What else to tell programs of the result. */
  readonly results?: (result: AdminResult) => object;
  /** Looked at before anything is asked. Throws a refusal. Default: notes an election nobody has led. */
  readonly check?: (snapshot: Snapshot, question: Question) => Promise<void>;
  /** The request makes what is missing: a name that nobody has used is meant. */
  readonly makes?: boolean;
  readonly needs?: Pick<StoreNeeds, 'setUp'>;
}

/** Puts an operator's request to the election and says what became of it. */
export async function administer(
  options: ElectionQuestion,
  context: Context,
  { request, words, details, results, check, makes, needs }: Administration,
): Promise<number> {
  const job = async (question: Question) => {
    const snapshot = await question.election.inspect({ signal: question.signal });
    if (check === undefined) await question.noteNeverLed(snapshot.view);
    else await check(snapshot, question);
    return request(question);
  };
  const result = makes
    ? await ask(options, context, request, needs)
    : await askWhatIsThere(options, context, check === undefined, job);
  const line = options.json
    ? toJson({ election: options.election, ...details, ...asJson(result), ...results?.(result) })
    : visible(words(result));
  context.stdout.write(`${line}\n`);
  return exitCodes.ok;
}

/** `before`: what stood in the record when the request was written. */
function asJson({ changed, view }: AdminResult): object {
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
