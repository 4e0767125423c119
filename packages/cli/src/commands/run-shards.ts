import { hostname } from 'node:os';
import type { ShardFenceHook, Shards, ShardsOptions } from '@incumbent/shards';
import { createShards } from '@incumbent/shards';
import type { Trouble } from 'incumbent';
import { parseDuration } from 'incumbent';
import type { Context } from '../context.ts';
import type { GuardProcess } from '../guard/spawn.ts';
import type { RunOptions } from '../options.ts';
import { EventLog } from '../run/events.ts';
import { GuardKeeper } from '../run/guard-keeper.ts';
import { GuardPool } from '../run/guard-pool.ts';
import { fence } from '../run/leadership.ts';
import { patienceMs } from '../run/reach-store.ts';
import type { AnyShard, ShardForm } from '../run/shard-form.ts';
import { ofShard, ShardPrograms } from '../run/shard-programs.ts';
import { ShardsRunner } from '../run/shards-runner.ts';
import { requireCommand } from '../run/shell-check.ts';
import { ToldProgram } from '../run/told-program.ts';
import { killMarginMs, timingOf } from '../timing-flags.ts';
import { checkEventsFd, definedEntries, introduce, requireLease, requireProgram } from './run.ts';

/** After KILL, a program may take so long to be gone. */
const lingeringMs = 5_000;

/** `run --shards`: programs for the shards that this process owns. */
export async function runShards(
  options: RunOptions & { readonly shards: number | readonly string[] },
  context: Context,
  early?: GuardProcess,
): Promise<number> {
  const { cwd } = context;
  const [program = '', ...args] = options.operands;
  const env = definedEntries(context.env);
  requireProgram(program, env, context);
  for (const command of options.onUnclean ?? []) requireCommand('--on-unclean', command);
  checkEventsFd(options.eventsFd);

  const store = await context.openStore(options.store, {
    timeoutMs: patienceMs,
    signal: context.signal,
    lease: options.lease,
    patient: true,
  });
  const { backend } = store;
  const { election: name } = options;
  const id = options.id ?? `${hostname()}-${process.pid}`;
  const stopTimeoutMs = parseDuration('--stop-timeout', options.stopTimeout ?? '30s');
  const timing = {
    ...timingOf(options, backend.limits),
    // A program is told, then ended, and then killed.
    stopTimeout: 2 * stopTimeoutMs + lingeringMs,
  };
  const common = { ...{ name, backend }, ...timing };
  // Checks the options before anything is begun.
  const looking = open({ ...common, shards: options.shards });
  const { leaseMs, stopMarginMs } = looking.timing;
  requireLease(options, looking.timing);
  await looking.close();

  const events = new EventLog(context.stderr, options, { election: name, candidate: id });
  let first = early;
  const guards = new GuardPool(() => {
    const process = first;
    first = undefined;
    return new GuardKeeper(
      {
        ...{ stopMarginMs, killMarginMs: killMarginMs(looking.timing) },
        stdin: options.stdin === true,
        onTrouble: ({ code, message }) =>
          events.emit({ event: 'trouble', sentence: message, fields: { code } }),
      },
      process,
    );
  });
  const spec = {
    ...{ program, args, cwd },
    env: {
      ...env,
      INCUMBENT_ELECTION: name,
      INCUMBENT_CANDIDATE: id,
      INCUMBENT_LEASE_MS: String(leaseMs),
    },
  };
  const onUnclean = (options.onUnclean ?? []).map(
    (command): ShardFenceHook<AnyShard> =>
      (predecessor, { shard, token, signal }) =>
        guards.use((guard) =>
          fence(
            command,
            { ...spec, env: { ...spec.env, INCUMBENT_SHARD: String(shard) } },
            {
              ...{ guard, signal, token, predecessor },
              events: { emit: (event) => events.emit(ofShard(shard, event)) },
            },
          ),
        ),
  );
  const runner = new ShardsRunner({
    ...{ guards, events, restart: options.restart },
    ...{ name, hasServers: store.servers !== undefined },
    ...(options.listen !== undefined && { listen: options.listen }),
    form: () =>
      options.perShard === true
        ? new ShardPrograms({ guards, events, spec, stopTimeoutMs })
        : new ToldProgram({ name, guards, events, spec, stopTimeoutMs }),
    open: (own) =>
      open({
        ...common,
        shards: options.shards,
        ...{ own, onUnclean },
        candidate: { id, addresses: options.address ?? [], metadata: options.metadata ?? {} },
        ...(options.weight !== undefined && { weight: options.weight }),
        ...(options.zone !== undefined && { zone: options.zone }),
        // The programs may outlive us by the time that it takes to kill them.
        actors: 'declared',
        onBelief: (deadline) => guards.belief(deadline),
        onTrouble: ({ what, error }: Trouble) => events.trouble(what, error),
      }),
  });
  try {
    await introduce(`shards ${name}`, store, events);
  } catch (error) {
    await guards.close();
    throw error;
  }
  return runner.run();
}

type AnyOptions = Omit<ShardsOptions<AnyShard>, 'shards' | 'own'> & {
  readonly shards: number | readonly string[];
  readonly own?: ShardForm['own'];
};

/** The kind of the list says of which kind the shards are. */
function open(options: AnyOptions): Shards<AnyShard> {
  const { shards } = options;
  return typeof shards === 'number'
    ? (createShards({ ...options, shards } as ShardsOptions<number>) as Shards<AnyShard>)
    : (createShards({ ...options, shards } as ShardsOptions<string>) as Shards<AnyShard>);
}
