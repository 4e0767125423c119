/** The parameters of a `zk:` URL. */
import type { Acl } from '@incumbent/zookeeper';
import { acl, permissions } from '@incumbent/zookeeper';
import type { Parameter, ValuesOf } from '../url/query.ts';
import { given, readQuery } from '../url/query.ts';
import type { SecretSource } from '../url/secrets.ts';
import { secretForm, secretSource } from '../url/secrets.ts';
import { tlsNames, tlsTable } from '../url/tls.ts';
import type { Refuse } from '../url/values.ts';
import { choice, duration, flag, quote, timeout, word } from '../url/values.ts';
import type { ZooKeeperParameters } from './location.ts';

const layouts = [
  ...(['incumbent', 'golea', 'curator-latch', 'curator-selector'] as const),
  ...(['kazoo', 'recipe', 'hadoop', 'node'] as const),
] as const;

const readSource = secretSource({ name: 'ZK_AUTH', path: '/etc/zookeeper/auth' });
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
  ...tlsTable,
  compatibility: { read: choice('3.4', '3.5') },
} satisfies Readonly<Record<string, Parameter<unknown>>>;

type Values = ValuesOf<typeof table>;

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
  const { values, shown } = readQuery(table, query, refuse);
  return { parameters: assemble(values, refuse), shown };
}

function assemble(values: Values, refuse: Refuse): ZooKeeperParameters {
  return {
    timeoutMs: values.timeout?.[0],
    compatibility: values.compatibility?.[0],
    auth: values.auth ?? [],
    sasl: values.sasl?.[0],
    tls: tlsNames(values, refuse),
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

function path(text: string, refuse: Refuse): string {
  return text.startsWith('/')
    ? text
    : refuse(`is the path of a node such as /elections, not ${quote(text)}`);
}

// --- secrets: nothing of a value is repeated ---

function credentials(text: string, refuse: Refuse): SecretSource {
  const source = readSource(text, refuse);
  if (source.kind === 'literal' && source.text.indexOf(':') < 1) refuse(`is ${authForm}`);
  return source;
}

function saslUser(text: string, refuse: Refuse): SecretSource {
  const source = readSource(text, refuse);
  if (source.kind === 'literal' && source.text.indexOf(':') < 1) refuse(`is ${saslForm}`);
  return source;
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
