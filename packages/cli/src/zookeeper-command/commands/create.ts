import type { CreateOptions, CreateReply, ZooKeeper } from '@incumbent/zookeeper';
import { NoNodeError } from '@incumbent/zookeeper';
import { parentOf } from '@incumbent/zookeeper/internal';
import { toJson, visible } from '../../terminal/text.ts';
import { parseAcl } from '../acl-spec.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import { statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { readData } from '../read-data.ts';
import { noteStates, withClient } from '../session.ts';

export async function create(args: Arguments, context: Context): Promise<number> {
  const path = pathOf(args, args.has('sequential'));
  const options = optionsOf(args);
  const data = (await readData(args, context)) ?? null;
  const { signal, json } = context;
  return withClient(args, context, async (client) => {
    const parent = parentOf(path);
    if (args.has('parents')) await client.ensurePath(parent, { signal });
    let reply: CreateReply;
    try {
      reply = await client.create(path, data, { ...options, signal });
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      const why = `${path}: there is no node ${parent} to create it in; -p makes what is missing`;
      throw new CommandError('NO_NODE', exitCodes.missing, why, { cause: error });
    }
    const stat = reply.stat === null ? {} : { stat: statToJson(reply.stat) };
    await context.print(
      json ? `${toJson({ path: reply.path, ...stat })}\n` : `${visible(reply.path)}\n`,
    );
    return options.ephemeral ? hold(client, reply.path, context) : exitCodes.ok;
  });
}

/**
 * An ephemeral node lives as long as its session: until the command is interrupted, or the session
 * expires.
 */
async function hold(client: ZooKeeper, path: string, context: Context): Promise<never> {
  context.note(`${path} is ephemeral: it is held until ctrl-C ends this session`);
  noteStates(client, context);
  for await (const { state } of client.states({ signal: context.signal })) {
    if (state !== 'expired') continue;
    throw new CommandError(
      'SESSION_EXPIRED',
      exitCodes.unavailable,
      `the session has expired, and ${path} with it; create it again`,
    );
  }
  context.signal.throwIfAborted();
  throw new CommandError(
    'SESSION_ENDED',
    exitCodes.unavailable,
    `the session of ${path} has ended`,
  );
}

function optionsOf(args: Arguments): CreateOptions {
  const [ephemeral, sequential, container] = ['ephemeral', 'sequential', 'container'].map((name) =>
    args.has(name),
  );
  const ttlMs = args.durationMs('ttl');
  if (container && (ephemeral || sequential || ttlMs !== undefined)) {
    throw new UsageError('a container (-c) is neither ephemeral nor sequential, and has no --ttl');
  }
  if (ephemeral && ttlMs !== undefined) {
    throw new UsageError('an ephemeral node (-e) ends with its session: it takes no --ttl');
  }
  const acl = args.all('acl').map(parseAcl);
  return {
    ...{ ephemeral, sequential, container },
    ...(ttlMs === undefined ? {} : { ttlMs }),
    ...(acl.length === 0 ? {} : { acl }),
  };
}
