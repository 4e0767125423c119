/** `incumbent shards`: looks at the shards of a set, and steers them. It takes no part. */
import type { ReadShardsOptions, ShardsStatus, SteeringResult } from '@incumbent/shards';
import {
  drainMember,
  listShards,
  observeShards,
  pinShard,
  readShards,
  unpinShard,
} from '@incumbent/shards';
import { parseDuration } from 'incumbent';
import { bounded, patientTiming } from '../ask.ts';
import type { Context, OpenStore } from '../context.ts';
import { listed } from '../elections.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { ShardsCommandOptions } from '../options.ts';
import { asFields, asJson, asLine, labelOf, memberTable } from '../output/shards.ts';
import { nearest } from '../terminal/nearest.ts';
import { painter } from '../terminal/style.ts';
import { fields } from '../terminal/table.ts';
import { toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';
import { parseUntil } from '../until.ts';

/** A drain without --until lasts until `undrain`. */
const forGoodUnixMs = Date.UTC(9999, 11, 31);

type Verb = ShardsCommandOptions['operands'][0];

/** The operand of each verb, and the options that it heeds. */
const verbs: Readonly<
  Record<Verb, { readonly takes?: string; readonly flags: readonly (keyof ShardsCommandOptions)[] }>
> = {
  status: { flags: [] },
  watch: { flags: [] },
  owner: { takes: 'SHARD', flags: [] },
  drain: { takes: 'MEMBER', flags: ['until', 'force'] },
  undrain: { takes: 'MEMBER', flags: [] },
  move: { takes: 'SHARD', flags: ['to', 'clear'] },
};

/** A command on an open store. */
interface Task {
  readonly options: ShardsCommandOptions;
  readonly context: Context;
  readonly store: OpenStore;
  readonly reading: ReadShardsOptions;
  /** Empty for verbs that take none. */
  readonly operand: string;
  readonly timeoutMs: number;
}

export async function shards(options: ShardsCommandOptions, context: Context): Promise<number> {
  const [verb, operand] = options.operands;
  checkLine(options);
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const untilUnixMs = options.until === undefined ? forGoodUnixMs : parsedUntil(options.until);
  const { signal } = context;
  const store = await context.openStore(options.store, {
    ...{ timeoutMs, timeoutName: '--timeout', signal },
    asksOnly: true,
  });
  const { backend } = store;
  const timing = patientTiming(timeoutMs, backend.limits);
  const reading = { name: options.election, backend, ...timing };
  const task: Task = { options, context, store, reading, timeoutMs, operand: operand ?? '' };
  switch (verb) {
    case 'status':
      return status(task);
    case 'watch':
      return watch(task);
    case 'owner':
      return owner(task);
    case 'drain':
      return drain(task, untilUnixMs);
    case 'undrain':
      return undrain(task);
    case 'move':
      return move(task);
    default:
      return verb satisfies never;
  }
}

/** @throws UsageError */
function checkLine(options: ShardsCommandOptions): void {
  const [verb, operand, ...more] = options.operands;
  const { takes, flags } = verbs[verb];
  const example = `as in \`incumbent shards ${verb}${takes === undefined ? '' : ` ${takes}`} -e NAME\``;
  if (takes !== undefined && operand === undefined) {
    throw new UsageError(`shards ${verb} needs ${takes}, ${example}`);
  }
  const extra = takes === undefined ? operand : more[0];
  if (extra !== undefined)
    throw new UsageError(`shards ${verb} does not take "${extra}", ${example}`);
  for (const flag of ['until', 'force', 'to', 'clear'] as const) {
    if (options[flag] !== undefined && !flags.includes(flag)) {
      throw new UsageError(`shards ${verb} does not heed --${flag}: leave it out`);
    }
  }
  if (verb === 'move' && (options.to === undefined) === (options.clear === undefined)) {
    throw new UsageError(
      'shards move needs --to MEMBER, or --clear to give the shard back to the balance',
    );
  }
}

function parsedUntil(text: string): number {
  return parseUntil(text, Date.now());
}

async function status(task: Task): Promise<number> {
  const { options, context, store } = task;
  const seen = await look(task);
  if (options.json) {
    context.stdout.write(`${toJson(asJson(seen, store.url))}\n`);
    return exitCodes.ok;
  }
  const paint = painter(context.stdout, context.env);
  const lines = [
    ...fields(asFields(seen, store.url, Date.now()), paint),
    '',
    ...memberTable(seen, paint, context.stdout.columns),
  ];
  context.stdout.write(`${lines.join('\n')}\n`);
  return exitCodes.ok;
}

async function watch({ options, context, store, reading }: Task): Promise<number> {
  const paint = painter(context.stdout, context.env);
  // Observing alone does not keep a process alive.
  const stayAlive = setInterval(() => {}, 2 ** 30);
  const onTrouble = ({ what, error }: { what: string; error: unknown }) =>
    context.stderr.write(`incumbent: ${visible(`${what}: ${(error as Error).message}`)}\n`);
  try {
    const { signal } = context;
    for await (const seen of observeShards({ ...reading, onTrouble }, { signal })) {
      const nowUnixMs = Date.now();
      const line = options.json
        ? toJson({
            time: isoTime(nowUnixMs),
            ...(seen === undefined
              ? { shards: options.election, members: [] }
              : asJson(seen, store.url)),
          })
        : asLine(seen, nowUnixMs, paint);
      context.stdout.write(`${line}\n`);
    }
    signal.throwIfAborted();
    return exitCodes.ok;
  } finally {
    clearInterval(stayAlive);
  }
}

async function owner(task: Task): Promise<number> {
  const { options, context, operand } = task;
  const seen = await look(task);
  const shard = shardIn(seen, operand);
  const found = seen.owner(shard);
  if (options.json) {
    const { id, addresses = [], token } = found ?? {};
    const own = id === undefined ? null : { id, addresses, token };
    const named = seen.names?.[shard];
    const line = { shards: seen.name, shard, ...(named !== undefined && { name: named }) };
    context.stdout.write(`${toJson({ ...line, owner: own })}\n`);
  } else if (found !== undefined) {
    context.stdout.write(`${visible([found.id, ...found.addresses].join(' '))}\n`);
  } else {
    context.stderr.write(
      `incumbent: shard ${labelOf(seen, shard)} of "${visible(seen.name)}" has no owner now\n`,
    );
  }
  return found === undefined ? exitCodes.no : exitCodes.ok;
}

async function drain(task: Task, untilUnixMs: number): Promise<number> {
  const { options, operand: id, reading } = task;
  const seen = await look(task);
  const known = [...new Set([...seen.members.map((member) => member.id), ...drainedIn(seen)])];
  if (!known.includes(id) && options.force !== true) {
    const meant = nearest(id, known);
    const instead =
      meant !== undefined ? `did you mean "${meant}"?` : `these take part: ${listed(known)}`;
    throw new CommandError(
      'UNKNOWN_MEMBER',
      exitCodes.no,
      `no process "${id}" takes part in the shards "${seen.name}"; ${instead} ` +
        '(`--force` keeps it out all the same)',
    );
  }
  const isForGood = untilUnixMs === forGoodUnixMs;
  const words = isForGood ? 'until `shards undrain`' : `until ${localTime(untilUnixMs)}`;
  return ask(task, (signal) => drainMember(reading, id, new Date(untilUnixMs), { signal }), {
    request: { request: 'drain', id, until: isForGood ? null : isoTime(untilUnixMs) },
    done: `"${id}" gives its shards to others, and is kept out ${words}`,
    already: `"${id}" was kept out ${words} already`,
  });
}

async function undrain(task: Task): Promise<number> {
  const { operand: id, reading } = task;
  return ask(task, (signal) => drainMember(reading, id, new Date(0), { signal }), {
    request: { request: 'undrain', id },
    done: `"${id}" is given shards again`,
    already: ({ before }) => {
      const others = drainedIn(before);
      const kept = others.length === 0 ? 'no process is' : `kept out: ${listed(others)}`;
      return `"${id}" was not kept out; ${kept}`;
    },
  });
}

async function move(task: Task): Promise<number> {
  const { options, operand, reading } = task;
  const seen = await look(task);
  const shard = shardIn(seen, operand);
  const label = labelOf(seen, shard);
  const { to } = options;
  if (to === undefined) {
    return ask(task, (signal) => unpinShard(reading, shard, { signal }), {
      request: { request: 'move', shard, to: null },
      done: `shard ${label} is shared like the others again`,
      already: `shard ${label} was not pinned`,
    });
  }
  return ask(task, (signal) => pinShard(reading, shard, to, { signal }), {
    request: { request: 'move', shard, to },
    done: ({ before }) => {
      const now = before.owner(shard)?.id;
      const from = now === undefined ? 'nobody owns it' : `"${now}" owns it`;
      return now === to
        ? `shard ${label} stays at "${to}"`
        : `shard ${label} is to be at "${to}"; now ${from}, and the coordinator moves it`;
    },
    already: `shard ${label} was pinned to "${to}" already`,
  });
}

interface Words {
  readonly request: Readonly<Record<string, unknown>>;
  readonly done: string | ((result: SteeringResult) => string);
  readonly already: string | ((result: SteeringResult) => string);
}

/** Puts an operator's request to the shards, and says what became of it. */
async function ask(
  { options, context, store, timeoutMs }: Task,
  request: (signal: AbortSignal) => Promise<SteeringResult>,
  { request: told, done, already }: Words,
): Promise<number> {
  const result = await bounded(timeoutMs, store.url, context.signal, request);
  const words = result.changed ? done : already;
  const line = options.json
    ? toJson({ shards: options.election, ...told, changed: result.changed })
    : visible(typeof words === 'string' ? words : words(result));
  context.stdout.write(`${line}\n`);
  return exitCodes.ok;
}

/** @throws CommandError when there are no such shards */
async function look({ options, context, store, reading, timeoutMs }: Task): Promise<ShardsStatus> {
  const { election: name } = options;
  return bounded(timeoutMs, store.url, context.signal, async (signal) => {
    const seen = await readShards(reading, { signal });
    if (seen !== undefined) return seen;
    const others = await listShards(store.backend, { signal }).catch(() => []);
    const meant = nearest(name, others);
    const instead =
      meant !== undefined
        ? `; did you mean "${meant}"?`
        : others.length > 0
          ? `; there are: ${listed(others)}`
          : '';
    throw new CommandError(
      'NO_SHARDS',
      exitCodes.no,
      `the store ${store.url} has no shards "${name}" (yet)${instead}`,
    );
  });
}

/**
 * The number of a shard that is given by its number or its name.
 * @throws UsageError
 */
function shardIn({ shards: count, isNamed, names }: ShardsStatus, text: string): number {
  const place = names?.indexOf(text) ?? -1;
  if (place >= 0) return place;
  const number = Number(text);
  if (/^\d{1,6}$/.test(text) && number < count) return number;
  const meant = names === undefined ? undefined : nearest(text, names);
  const instead =
    meant !== undefined
      ? `did you mean "${meant}"?`
      : `shards have the numbers 0 to ${count - 1}${isNamed ? ', in the order of their names' : ''}`;
  throw new UsageError(`there is no shard "${text}"; ${instead}`);
}

function drainedIn({ drains }: ShardsStatus): readonly string[] {
  return drains.map(({ id }) => id);
}
