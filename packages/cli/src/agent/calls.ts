import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../failure.ts';
import type { ProgramExit, ProgramSpec } from '../guard/index.ts';
import { withoutNodeVariables } from '../guard/index.ts';
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
/** A host with a port or a path, without a scheme. */
const address = /^(\[[0-9a-f:.]+\]|localhost|[\w.-]+(?=:)|\d+(\.\d+){3})((:\d+)(\/\S*)?|\/\S*)$/i;
const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * @param option the option that has the value
 * @throws UsageError
 */
export function parseCall(option: string, text: string): Call {
  requireCommand(option, text, 'a command or a URL');
  if (address.test(text)) {
    throw new UsageError(
      `${option} "${text}" looks like a URL, and would run as a command: write http://${text}`,
    );
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { kind: 'shell', option, command: text };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new UsageError(`${option} "${text}" is not a URL`);
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(
      `${option}: a user or a password in the URL would show in logs and errors; give a command that ` +
        'reads them from a file, such as `curl --netrc-file FILE …`',
    );
  }
  if (url.protocol !== 'http:' || !loopback.test(url.hostname)) {
    throw new UsageError(
      `${option} "${text}" is not an http:// URL on 127.0.0.1, [::1] or localhost: the agent runs beside its service and calls ` +
        'http://127.0.0.1:PORT/…; for anything else give a command, such as one of curl',
    );
  }
  return { kind: 'http', option, url: url.href };
}

/** A command that may still have its effect ends with this code (EX_TEMPFAIL). */
const unsureCode = 75;

/** The call as a program, for the guard to hold. */
export function asProgram(call: Call, { env, cwd }: CallContext): ProgramSpec {
  return call.kind === 'shell'
    ? { program: '/bin/sh', args: ['-c', call.command], env, cwd }
    : {
        program: process.execPath,
        args: [httpCallFile],
        env: { ...withoutNodeVariables(env), INCUMBENT_CALL_URL: call.url },
        cwd,
      };
}

/** Without the query, which may hold a secret. */
function shown({ option, url }: Extract<Call, { kind: 'http' }>): string {
  const { origin, pathname } = new URL(url);
  return `${option} ${origin}${pathname}`;
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
  // A look changes nothing, so it may outlive us.
  const endsWithUs = method === 'POST';
  await runShellCheck(call.option, call.command, env, cwd, signal, endsWithUs);
  signal.throwIfAborted();
}

/** Nothing listens there, or the connection was broken off: the process may have ended. */
const disconnects: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE']);

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
    return { health: signal.aborted ? 'not-responding' : healthAfter(error), error };
  }
}

function healthAfter(error: unknown): Health {
  if (error instanceof StatusError) return 'unhealthy';
  if (error instanceof CommandFailedError) {
    return error.exitCode === null ? 'not-responding' : 'unhealthy';
  }
  const { code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  return disconnects.has(code) ? 'disconnected' : 'not-responding';
}

function http(
  call: Extract<Call, { kind: 'http' }>,
  method: 'GET' | 'POST',
  env: CallContext['env'],
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const body = method === 'POST' ? bodyOf(env) : '';
    const headers = body === '' ? roleHeaders(env) : { 'content-type': 'application/json' };
    const asked = request(call.url, { method, headers, agent: false, signal }, (response) => {
      response.resume();
      response.once('error', reject);
      response.once('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode >= 200 && statusCode < 300) resolve();
        else reject(new StatusError(`${shown(call)}: status ${statusCode}`));
      });
    });
    asked.once('error', (error) =>
      reject(new Error(`${shown(call)}: ${error.message}`, { cause: error })),
    );
    asked.end(body);
  });
}

/** A check can compare them with its own role. */
function roleHeaders(env: CallContext['env']): Record<string, string> {
  const { INCUMBENT_ROLE: role, INCUMBENT_TOKEN: token } = env;
  return {
    ...(role === undefined ? {} : { 'incumbent-role': role }),
    ...(token === undefined ? {} : { 'incumbent-token': token }),
  };
}

/**
 * Whether a command that has failed may still have its effect: it was cut off, or says so. A shell
 * says 128 + n of a signal, and `timeout` 124.
 */
export function mayHaveEffect({ code, because }: ProgramExit): boolean {
  return (
    because !== 'itself' || code === null || code >= 128 || code === 124 || code === unsureCode
  );
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
