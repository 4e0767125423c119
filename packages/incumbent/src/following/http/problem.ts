import { electionHeader, refusedHeader, tokenHeader, writeTokens } from '../headers.ts';
import type { HttpResponse } from './node-http.ts';

/**
 * Why a request was not passed on: the `incumbent-refused` header. With `term-ended` it was
 * passed on, and nothing is known of its answer. It may be passed on again, because its
 * method changes nothing.
 */
export type Refusal =
  | 'not-leading'
  | 'term-ended'
  | 'no-leader'
  | 'newer-token'
  | 'unreachable'
  | 'not-passed-on'
  | 'no-upgrade'
  | 'bad-token'
  | 'token-required'
  | 'stale-token'
  | 'token-memory';

export interface Problem {
  readonly status: number;
  /** The end of the problem's type. */
  readonly type:
    | Refusal
    | 'outcome-unknown'
    | 'bad-gateway'
    | 'gateway-timeout'
    | 'request-timeout';
  readonly title: string;
  readonly detail: string;
  readonly election: string;
  /** The newest token known. */
  readonly token?: bigint | undefined;
  /** True: nothing came of the request, or nothing that it was meant to bring about. */
  readonly refused: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The head and the text (RFC 9457) of an answer of ours. */
export function renderProblem(problem: Problem): {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
} {
  const { status, type, title, detail, election, token, refused } = problem;
  const text = JSON.stringify({
    type: `urn:incumbent:problem:${type}`,
    title,
    status,
    detail,
    election,
    ...(token === undefined ? {} : { token: String(token) }),
  });
  const written = token === undefined ? undefined : writeTokens([[election, token]]);
  return {
    text,
    headers: {
      'content-type': 'application/problem+json',
      'content-length': String(Buffer.byteLength(text)),
      'cache-control': 'no-store',
      [electionHeader]: encodeURIComponent(election),
      ...(written === undefined ? {} : { [tokenHeader]: written.tokens }),
      ...(refused ? { [refusedHeader]: type } : {}),
      ...problem.headers,
    },
  };
}

/** Does nothing when an answer has begun already. */
export function sendProblem(response: HttpResponse, problem: Problem): void {
  if (response.headersSent) return;
  const { headers, text } = renderProblem(problem);
  response.statusCode = problem.status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.end(text);
}
