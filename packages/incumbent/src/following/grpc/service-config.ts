/**
 * gRPC's service config, checked before it reaches a channel. A malformed one would throw in the
 * middle of a call.
 */

export interface ServiceConfig {
  readonly loadBalancingConfig: readonly object[];
  readonly methodConfig: readonly MethodConfig[];
  readonly retryThrottling?: object;
}

/** The other fields are as gRPC takes them. */
export interface MethodConfig {
  readonly name: readonly { readonly service?: string; readonly method?: string }[];
  readonly waitForReady?: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/** @throws Error with the rule that is broken */
export function parseServiceConfig(text: string): ServiceConfig {
  const config = fieldsOf('a service config', JSON.parse(text));
  const { loadBalancingConfig = [], methodConfig = [], retryThrottling } = config;
  const methods = listOf('methodConfig', methodConfig).map(checkMethod);
  checkNames(methods);
  return {
    loadBalancingConfig: listOf('loadBalancingConfig', loadBalancingConfig).map(checkBalancing),
    methodConfig: methods,
    ...(retryThrottling === undefined ? {} : { retryThrottling: checkThrottling(retryThrottling) }),
  };
}

function checkBalancing(value: unknown): object {
  const entry = fieldsOf('an entry of loadBalancingConfig', value);
  if (Object.keys(entry).length !== 1) {
    throw new Error('an entry of loadBalancingConfig names exactly one policy');
  }
  return entry;
}

function checkMethod(value: unknown): MethodConfig {
  const { name, waitForReady, timeout, retryPolicy, hedgingPolicy, ...rest } = fieldsOf(
    'an entry of methodConfig',
    value,
  );
  if (waitForReady !== undefined && typeof waitForReady !== 'boolean') {
    throw new Error('waitForReady is true or false');
  }
  for (const size of ['maxRequestBytes', 'maxResponseBytes']) {
    if (rest[size] !== undefined) numberOf(size, rest[size], (bytes) => bytes >= 0);
  }
  if (retryPolicy !== undefined && hedgingPolicy !== undefined) {
    throw new Error('a method has a retryPolicy or a hedgingPolicy, not both');
  }
  return {
    ...rest,
    name: listOf('name', name).map(checkName),
    ...(waitForReady === undefined ? {} : { waitForReady }),
    ...(timeout === undefined ? {} : { timeout: durationOf('timeout', timeout) }),
    ...(retryPolicy === undefined ? {} : { retryPolicy: checkRetry(retryPolicy) }),
    ...(hedgingPolicy === undefined ? {} : { hedgingPolicy: checkHedging(hedgingPolicy) }),
  };
}

function checkName(value: unknown): MethodConfig['name'][number] {
  const { service = '', method = '' } = fieldsOf('a name', value);
  if (typeof service !== 'string' || typeof method !== 'string') {
    throw new Error('the service and the method of a name are strings');
  }
  if (service === '' && method !== '') throw new Error('a name with a method needs a service');
  return { ...(service === '' ? {} : { service }), ...(method === '' ? {} : { method }) };
}

function checkNames(methods: readonly MethodConfig[]): void {
  const seen = new Set<string>();
  for (const { service = '', method = '' } of methods.flatMap(({ name }) => name)) {
    const name = `${service}/${method}`;
    if (seen.has(name)) throw new Error(`"${name}" is configured twice`);
    seen.add(name);
  }
}

function checkRetry(value: unknown): Fields {
  const policy = fieldsOf('retryPolicy', value);
  numberOf('maxAttempts', policy['maxAttempts'], (n) => Number.isInteger(n) && n >= 2);
  durationOf('initialBackoff', policy['initialBackoff']);
  durationOf('maxBackoff', policy['maxBackoff']);
  numberOf('backoffMultiplier', policy['backoffMultiplier'], (n) => n > 0);
  const codes = listOf('retryableStatusCodes', policy['retryableStatusCodes']);
  if (codes.length === 0) throw new Error('retryableStatusCodes must not be empty');
  codes.forEach(checkCode);
  return policy;
}

function checkHedging(value: unknown): Fields {
  const policy = fieldsOf('hedgingPolicy', value);
  numberOf('maxAttempts', policy['maxAttempts'], (n) => Number.isInteger(n) && n >= 2);
  if (policy['hedgingDelay'] !== undefined) durationOf('hedgingDelay', policy['hedgingDelay']);
  listOf('nonFatalStatusCodes', policy['nonFatalStatusCodes'] ?? []).forEach(checkCode);
  return policy;
}

function checkThrottling(value: unknown): object {
  const { maxTokens, tokenRatio } = fieldsOf('retryThrottling', value);
  return {
    maxTokens: numberOf('maxTokens', maxTokens, (n) => n > 0 && n <= 1000),
    tokenRatio: numberOf('tokenRatio', tokenRatio, (n) => n > 0),
  };
}

const codeNames: ReadonlySet<string> = new Set(
  (
    'OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS ' +
    'PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED ' +
    'INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED'
  ).split(' '),
);

function checkCode(code: unknown): void {
  const isKnown =
    typeof code === 'string'
      ? codeNames.has(code.toUpperCase())
      : Number.isInteger(code) && (code as number) >= 0 && (code as number) < codeNames.size;
  if (!isKnown) throw new Error(`${JSON.stringify(code)} is no status code`);
}

interface Duration {
  readonly seconds: number;
  readonly nanos: number;
}

/** As text with at most nine digits behind the point: `"0.5s"`. grpc-js also knows this form: */
function isDuration(value: unknown): value is Duration {
  const { seconds, nanos } = (value ?? {}) as Partial<Duration>;
  return typeof seconds === 'number' && typeof nanos === 'number';
}

function durationOf(what: string, value: unknown): Duration {
  if (isDuration(value)) return value;
  const match = typeof value === 'string' ? /^(\d+)(?:\.(\d{1,9}))?s$/.exec(value) : null;
  if (match === null) throw new Error(`${what} is a duration such as "0.5s"`);
  return { seconds: Number(match[1]), nanos: Number((match[2] ?? '').padEnd(9, '0')) };
}

function numberOf(what: string, value: unknown, holds: (value: number) => boolean): number {
  if (typeof value !== 'number' || !holds(value)) {
    throw new Error(`${what} cannot be ${JSON.stringify(value)}`);
  }
  return value;
}

function listOf(what: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} must be a list`);
  return value;
}

function fieldsOf(what: string, value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${what} must be an object`);
  }
  return value as Fields;
}
