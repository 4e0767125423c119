/**
 * The parameters of a `zk:` URL. Those that may hold a secret are never repeated in a message, nor
 * is anything behind them: an "&" in a password would make a parameter of its rest.
 */
import type { Acl } from '@incumbent/zookeeper';
import { acl, permissions } from '@incumbent/zookeeper';
import { parseDuration } from 'incumbent';
import type { SecretSource, ZooKeeperParameters } from './location.ts';

/** Says what is wrong, behind "--store: "; never returns. */
export type Refuse = (why: string) => never;

/** One parameter: how its value is read, and how it is shown again. */
interface Parameter<Value> {
  readonly read: (text: string, refuse: Refuse) => Value;
  /** Absent: as it was written. */
  readonly show?: (text: string) => string;
  readonly isSecret?: true;
  readonly mayRepeat?: true;
}

const layouts = [
  ...(['incumbent', 'golea', 'curator-latch', 'curator-selector'] as const),
  ...(['kazoo', 'recipe', 'hadoop'] as const),
] as const;

const secretForm = 'env:NAME (a variable) or file:/PATH';
const authForm = `SCHEME:CREDENTIALS such as digest:USER:PASSWORD, ${secretForm}`;
const saslForm = `USER:PASSWORD, ${secretForm}`;
const aclForm =
  'open, creator, or SCHEME:ID:PERMISSIONS such as world:anyone:r, auth::rwcda or ' +
  'digest:USER:PASSWORD:rwcda, repeated for each entry';

const table = {
  timeout: { read: timeout },
  layout: { read: choice(...layouts) },
  root: { read: path },
  acl: { read: aclEntry, show: showAcl, isSecret: true, mayRepeat: true },
  create: { read: flag },
  'on-disconnect': { read: choice('hold', 'step-down') },
  'predecessor-wait': { read: choice('belief', 'off') },
  recheck: { read: duration },
  'tick-time': { read: duration },
  poll: { read: duration },
  'delay-after-win': { read: duration },
  'active-data': { read: word },
  auth: { read: credentials, show: showSecret, isSecret: true, mayRepeat: true },
  sasl: { read: saslUser, show: showSecret, isSecret: true },
  'tls-ca': { read: word },
  'tls-cert': { read: word },
  'tls-key': { read: word },
  'tls-servername': { read: word },
  compatibility: { read: choice('3.4', '3.5') },
} satisfies Readonly<Record<string, Parameter<unknown>>>;

type Name = keyof typeof table;
type Values = { readonly [N in Name]?: readonly ReturnType<(typeof table)[N]['read']>[] };

export const parameterNames: readonly string[] = Object.keys(table);

/**
 * @param query what stands behind "?"
 * @param refuse is given sentences without secrets
 * @returns the parameters, and the query again without secrets
 */
export function readParameters(
  query: string,
  refuse: Refuse,
): { readonly parameters: ZooKeeperParameters; readonly shown: string } {
  const values: Partial<Record<Name, unknown[]>> = {};
  const shown: string[] = [];
  let isBehindSecret = false;
  for (const part of query.split('&').filter((each) => each !== '')) {
    const at = part.indexOf('=');
    const name = at === -1 ? part : part.slice(0, at);
    if (!isName(name)) {
      if (isBehindSecret) {
        refuse(
          'has an unknown parameter behind a secret, perhaps the rest of it: write %26 for "&" in it',
        );
      }
      refuse(
        `has the unknown parameter "${name.slice(0, 40)}"; there are ${parameterNames.join(', ')}`,
      );
    }
    const parameter: Parameter<unknown> = table[name as Name];
    isBehindSecret ||= parameter.isSecret === true;
    if (at === -1 || at === part.length - 1) refuse(`has no value for the parameter ${name}`);
    let text = '';
    try {
      text = decodeURIComponent(part.slice(at + 1));
    } catch {
      refuse(`has a "%" without two hex digits in the parameter ${name}; write %25 for "%"`);
    }
    const before = values[name as Name] ?? [];
    if (before.length > 0 && parameter.mayRepeat !== true) refuse(`has two parameters ${name}`);
    values[name as Name] = [
      ...before,
      parameter.read(text, (why) => refuse(`has the parameter ${name}, which ${why}`)),
    ];
    shown.push(`${name}=${encode((parameter.show ?? ((same) => same))(text))}`);
  }
  return { parameters: assemble(values as Values, refuse), shown: shown.join('&') };
}

function isName(name: string): name is Name {
  return Object.hasOwn(table, name);
}

function assemble(values: Values, refuse: Refuse): ZooKeeperParameters {
  const [ca, cert, key, servername] = [
    values['tls-ca']?.[0],
    values['tls-cert']?.[0],
    values['tls-key']?.[0],
    values['tls-servername']?.[0],
  ];
  if ((cert === undefined) !== (key === undefined)) {
    refuse('has one of tls-cert and tls-key; they belong together');
  }
  const given = <Key extends string, Value>(key: Key, value: Value | undefined) =>
    (value === undefined ? {} : { [key]: value }) as { readonly [K in Key]?: Value };
  return {
    timeoutMs: values.timeout?.[0],
    compatibility: values.compatibility?.[0],
    auth: values.auth ?? [],
    sasl: values.sasl?.[0],
    tls: {
      ...given('ca', ca),
      ...given('cert', cert),
      ...given('key', key),
      ...given('servername', servername),
    },
    options: {
      ...given('layout', values.layout?.[0]),
      ...given('root', values.root?.[0]),
      ...given('acl', aclOf(values.acl, refuse)),
      ...given('create', values.create?.[0]),
      ...given('onDisconnect', values['on-disconnect']?.[0]),
      ...given('predecessorWait', values['predecessor-wait']?.[0]),
      ...given('recheck', values.recheck?.[0]),
      ...given('tickTime', values['tick-time']?.[0]),
      ...given('poll', values.poll?.[0]),
      ...given('delayAfterWin', values['delay-after-win']?.[0]),
      ...given('activeData', values['active-data']?.[0]),
    },
  };
}

/** Legal as it is in a query, and easier to read. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(?:3A|2F|2C|40|3D)/g, decodeURIComponent);
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function word(text: string): string {
  return text;
}

function choice<Choice extends string>(...choices: readonly Choice[]) {
  return (text: string, refuse: Refuse): Choice => {
    const chosen = choices.find((each) => each === text);
    return chosen ?? refuse(`is ${choices.join(', ')}, not ${quote(text)}`);
  };
}

function flag(text: string, refuse: Refuse): boolean {
  return text === 'true' || (text !== 'false' && refuse(`is true or false, not ${quote(text)}`));
}

function path(text: string, refuse: Refuse): string {
  return text.startsWith('/')
    ? text
    : refuse(`is the path of a node such as /elections, not ${quote(text)}`);
}

function duration(text: string, refuse: Refuse): string {
  if (/^(?:\d+(?:\.\d+)?|\.\d+)(?:ms|s|m|h)$/.test(text)) return text;
  return refuse(`is a duration such as 500ms, 10s or 2m, not ${quote(text)}`);
}

function timeout(text: string, refuse: Refuse): number {
  const ms = Math.round(parseDuration('timeout', duration(text, refuse)));
  return ms >= 1 ? ms : refuse(`is a duration of 1ms or more, not ${quote(text)}`);
}

// --- secrets: nothing of a value is repeated ---

function credentials(text: string, refuse: Refuse): SecretSource {
  const source = secretSource(text, refuse);
  if (source.kind === 'literal' && source.text.indexOf(':') < 1) refuse(`is ${authForm}`);
  return source;
}

function saslUser(text: string, refuse: Refuse): SecretSource {
  const source = secretSource(text, refuse);
  if (source.kind === 'literal' && source.text.indexOf(':') < 1) refuse(`is ${saslForm}`);
  return source;
}

function secretSource(text: string, refuse: Refuse): SecretSource {
  if (text.startsWith('env:')) {
    const name = text.slice('env:'.length);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      refuse('has behind env: no name of a variable, such as env:ZK_AUTH');
    }
    return { kind: 'env', name };
  }
  if (text.startsWith('file:')) {
    const file = text.slice('file:'.length);
    if (file === '') refuse('has behind file: no path, such as file:/etc/zookeeper/auth');
    return { kind: 'file', path: file };
  }
  return { kind: 'literal', text };
}

function showSecret(text: string): string {
  if (/^(?:env|file):/.test(text)) return text;
  // Of `digest:joe:secret` the scheme, of `joe:secret` nothing: it might be the other way round.
  return text.startsWith('digest:') ? 'digest:***' : '***';
}

type AclEntry = 'open' | 'creator' | Acl;

function aclEntry(text: string, refuse: Refuse): AclEntry {
  if (text === 'open' || text === 'creator') return text;
  const match = /^([a-z0-9-]+):(.*):([a-z]+)$/s.exec(text);
  if (match === null) return refuse(`is ${aclForm}`);
  const [, scheme, id, letters] = match as unknown as [string, string, string, string];
  const perms = permissionsOf(letters, refuse);
  if (scheme === 'world' && id !== 'anyone') refuse('has of the scheme world only world:anyone');
  if (scheme !== 'digest' && scheme !== 'digest-hash') return { scheme, id, perms };
  // As `incumbent-zk` has it: `digest` with the password, `digest-hash` with what the server keeps.
  const colon = id.indexOf(':');
  if (colon < 1 || colon === id.length - 1) {
    const secret = scheme === 'digest' ? 'PASSWORD' : 'HASH';
    refuse(`is of the scheme ${scheme} ${scheme}:USER:${secret}:PERMISSIONS`);
  }
  if (scheme === 'digest-hash') return { scheme: 'digest', id, perms };
  return acl.digest(id.slice(0, colon), id.slice(colon + 1), perms);
}

const bits: Readonly<Record<string, number>> = {
  r: permissions.read,
  w: permissions.write,
  c: permissions.create,
  d: permissions.delete,
  a: permissions.admin,
};

function permissionsOf(letters: string, refuse: Refuse): number {
  let perms = 0;
  for (const letter of letters) {
    const bit = bits[letter];
    if (bit === undefined)
      refuse('allows some of r, w, c, d, a (read, write, create, delete, admin)');
    perms |= bit ?? 0;
  }
  return perms;
}

function showAcl(text: string): string {
  return text.replace(/^(digest(?:-hash)?):.*(:[a-z]+)$/s, '$1:***$2');
}

function aclOf(
  entries: readonly AclEntry[] | undefined,
  refuse: Refuse,
): 'open' | 'creator' | readonly Acl[] | undefined {
  const [first, ...more] = entries ?? [];
  if (first === undefined) return undefined;
  if (typeof first === 'string') {
    if (more.length > 0) refuse(`has the parameter acl=${first}, which stands alone`);
    return first;
  }
  return [first, ...more].map((entry) =>
    typeof entry === 'string'
      ? refuse(`has the parameter acl=${entry}, which stands alone`)
      : entry,
  );
}
