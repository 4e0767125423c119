import {
  ElectionError,
  RecordDamagedError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../../base/errors.ts';

/** The rights that a user needs in Redis: to look, and to stand as a candidate. */
export type Right = 'read' | 'write';

/**
 * The server's errors by their first word, and their meaning for an election. `refuse`: waiting is
 * hopeless, unless it has worked before.
 */
const sayings: readonly (readonly [RegExp, 'wait' | 'refuse', string])[] = [
  [
    /\bREADONLY\b/,
    'wait',
    'this server is a read-only replica: after a fail-over the client will find the primary; if it ' +
      'does not, it was given the wrong address',
  ],
  [/\b(NOAUTH|WRONGPASS)\b/, 'refuse', 'log in: give the client a username and a password'],
  [
    /\bNOPERM\b|user executing the script can't|has no permissions/,
    'refuse',
    'the user needs the rights that docs/stores/redis.md lists',
  ],
  [
    /\bNORUNID\b/,
    'refuse',
    'without it nobody can see that a server was started again, empty or with an older record',
  ],
  [
    /\b(MOVED|ASK|CROSSSLOT)\b/,
    'wait',
    'this server is a node of a cluster, and another one has the key: use a cluster client',
  ],
  [/unknown command/i, 'refuse', 'scripts, hashes, INFO and TIME are needed'],
  [/\bOOM\b/, 'wait', 'its memory is full (maxmemory): give it more, or remove something'],
  [/\bMISCONF\b/, 'wait', 'it cannot write its snapshot: look at its log and its disk'],
  [/\bNOREPLICAS\b/, 'wait', 'too few replicas are connected (min-replicas-to-write)'],
  [/\b(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|UNBLOCKED)\b/, 'wait', 'it will pass'],
];

/**
 * A client library's error as an error that says what to do.
 * @param key the key of the record, for the error
 * @param hasWorked true: the client was allowed this before. Users and rights are not replicated,
 * so after a fail-over they may be missing for a moment. An operator may also restore a right
 */
export function asStoreError(
  error: unknown,
  key: string,
  description: string,
  hasWorked: boolean,
): unknown {
  if (error instanceof ElectionError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (/\bWRONGTYPE\b/.test(message)) {
    return new RecordDamagedError(keyLocation(key), 'the key is of another type', { cause: error });
  }
  if (/\bNOTOURS\b/.test(message)) {
    return new RecordDamagedError(keyLocation(key), 'a hash of somebody else', { cause: error });
  }
  for (const [pattern, verdict, wayOut] of sayings) {
    if (!pattern.test(message)) continue;
    const text = `${description} refuses: ${message}; ${wayOut}`;
    if (verdict === 'wait') return new StoreUnavailableError(text, { cause: error });
    return refusal(text, hasWorked, error);
  }
  const isClosed = /client is closed|connection is closed/i.test(message);
  return new StoreUnavailableError(
    `${description} cannot be used: ${withDetails(error, message)}` +
      (isClosed ? '; the client must be connected, and stay so until the election is closed' : ''),
    { cause: error },
  );
}

/** @param hasWorked see `asStoreError` */
export function refusal(text: string, hasWorked: boolean, cause?: unknown): ElectionError {
  if (!hasWorked) return new StoreUnsuitableError(text);
  return new StoreUnavailableError(`${text} (it was allowed before)`, { cause });
}

export function keyLocation(key: string): string {
  return `the key ${JSON.stringify(key)}`;
}

/** Some errors have no message of their own, only those of several attempts. */
function withDetails(error: unknown, message: string): string {
  const inner = error instanceof AggregateError ? error.errors : [];
  const last = (error as { lastNodeError?: unknown } | undefined)?.lastNodeError;
  const messages = [
    message,
    ...inner.map(messageOf),
    ...(last === undefined ? [] : [messageOf(last)]),
  ];
  return [...new Set(messages.filter((each) => each !== ''))].join(', ') || 'no reason was given';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
