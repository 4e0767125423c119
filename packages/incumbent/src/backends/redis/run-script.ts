import type { Send } from './driver.ts';
import type { Script } from './scripts.ts';

/** Runs a script by its digest, and by its text where the server does not know it (any more). */
export async function runScript(
  send: Send,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const rest = [`${keys.length}`, ...keys, ...args];
  try {
    return await send(['EVALSHA', script.sha1, ...rest]);
  } catch (error) {
    // It was certainly not run, so to run it now is no repetition.
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return send(['EVAL', script.text, ...rest]);
  }
}

/** Clients can be told to give bytes instead of texts. */
export function texts(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(String) : [];
}
