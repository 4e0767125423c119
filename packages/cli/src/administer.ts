import type { AdminResult, View } from 'incumbent';
import type { Question } from './ask.ts';
import { ask } from './ask.ts';
import type { Context, StoreNeeds } from './context.ts';
import { exitCodes } from './failure.ts';
import type { ElectionQuestion } from './options.ts';
import { sinceOf, tokenOf } from './output/describe.ts';
import { toJson, visible } from './output/text.ts';

/**
 * Puts an operator's request to the election and says what became of it.
 * @param words for people, on stdout
 */
export async function administer(
  options: ElectionQuestion,
  context: Context,
  request: (question: Question) => Promise<AdminResult>,
  words: (result: AdminResult) => string,
  details: Readonly<Record<string, unknown>> = {},
  needs: Pick<StoreNeeds, 'setUp'> = {},
): Promise<number> {
  const result = await ask(options, context, request, needs);
  const line = options.json
    ? toJson({ election: options.election, ...details, ...asJson(result) })
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
