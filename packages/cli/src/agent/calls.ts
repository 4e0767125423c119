import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../failure.ts';
import type { ProgramSpec } from '../guard/index.ts';
import { CommandFailedError, requireCommand, runShellCheck } from '../run/shell-check.ts';
import type { Health } from './service-state.ts';

/** How the agent tells the service something: a shell command, or a request to this machine. */
export type Call =
  | { readonly kind: 'shell'; readonly option: string; readonly command: string }
  | { readonly kind: 'http'; readonly option: string; readonly url: string };

/** The environment of every call. A POST has the variables of the term in its JSON body. */
export interface CallContext {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

const httpCallFile: string = fileURLToPath(new URL('../../guard/http-call.cjs', import.meta.url));
const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * @param option the option that has the value
 * @throws UsageError
 */
export function parseCall(option: string, text: string): Call {
  requireCommand(option, text, 'a command or a URL');
  if (!/^https?:\/\//i.test(text)) return { kind: 'shell', option, command: text };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new UsageError(`${option} "${text}" is not a URL`);
  if (url.protocol !== 'http:' || !loopback.test(url.hostname)) {
    throw new UsageError(
      `${option} "${text}" is not a URL of this machine: the agent runs beside its service and calls ` +
        'http://127.0.0.1:PORT/…; for anything else give a command, such as one of curl',
    );
  }
  return { kind: 'http', option, url: url.href };
}

/** The call as a program, for the guard to hold. */
export function asProgram(call: Call, { env, cwd }: CallContext): ProgramSpec {
  return call.kind === 'shell'
    ? { program: '/bin/sh', args: ['-c', call.command], env, cwd }
    : { program: process.execPath, args: [httpCallFile, call.url], env, cwd };
}

/** A service that answered a request, and not with success. */
class StatusError extends Error {
  override readonly name: string = 'StatusError';
}

/**
 * Runs a call to its end in this process.
 * @throws when the service refused, or gave no answer; `signal.reason`
 */
export async function run(
  call: Call,
  method: 'GET' | 'POST',
  { env, cwd }: CallContext,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  if (call.kind === 'http') return http(call, method, env, signal);
  await runShellCheck(call.option, call.command, env, cwd, signal);
  signal.throwIfAborted();
}

/** @returns what the service said, and in words when it is not well. `signal` ends the look */
export async function lookAtHealth(
  call: Call,
  context: CallContext,
  signal: AbortSignal,
): Promise<{ readonly health: Health; readonly error?: unknown }> {
  try {
    await run(call, 'GET', context, signal);
    return { health: 'healthy' };
  } catch (error) {
    const answered =
      error instanceof StatusError ||
      (error instanceof CommandFailedError && error.exitCode !== null && !signal.aborted);
    return { health: answered ? 'unhealthy' : 'not-responding', error };
  }
}

function http(
  { option, url }: Extract<Call, { kind: 'http' }>,
  method: 'GET' | 'POST',
  env: CallContext['env'],
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const body = method === 'POST' ? bodyOf(env) : '';
    const headers = body === '' ? {} : { 'content-type': 'application/json' };
    const asked = request(url, { method, headers, agent: false, signal }, (response) => {
      response.resume();
      response.once('error', reject);
      response.once('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode >= 200 && statusCode < 300) resolve();
        else reject(new StatusError(`${option} ${url}: status ${statusCode}`));
      });
    });
    asked.once('error', (error) =>
      reject(new Error(`${option} ${url}: ${error.message}`, { cause: error })),
    );
    asked.end(body);
  });
}

/** guard/http-call.cjs sends the same. */
function bodyOf(env: CallContext['env']): string {
  const { INCUMBENT_ELECTION, INCUMBENT_CANDIDATE, INCUMBENT_TOKEN } = env;
  return JSON.stringify({
    election: INCUMBENT_ELECTION,
    candidate: INCUMBENT_CANDIDATE,
    token: INCUMBENT_TOKEN ?? null,
  });
}
