/** The end of a worker: answers calls that arrive as lines of JSON on stdin. */
import type { Answer, Call, Methods } from './calls.ts';

export type Handlers<M extends Methods<M>> = {
  readonly [K in keyof M]: (params: M[K]['params']) => M[K]['result'] | Promise<M[K]['result']>;
};

export function serve<M extends Methods<M>>(handlers: Handlers<M>): void {
  let rest = '';
  process.stdin.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) void answer(handlers, JSON.parse(line) as Call);
  });
  process.stdin.on('end', () => process.exit(0));
}

async function answer<M extends Methods<M>>(handlers: Handlers<M>, call: Call): Promise<void> {
  const { id, method, params } = call;
  let sent: Answer;
  try {
    const handler = handlers[method as keyof M];
    if (handler === undefined) throw new Error(`there is no method "${method}"`);
    sent = { id, result: (await handler(params)) ?? null };
  } catch (error) {
    sent = { id, error: error instanceof Error ? error.message : String(error) };
  }
  process.stdout.write(`${JSON.stringify(sent)}\n`);
}
