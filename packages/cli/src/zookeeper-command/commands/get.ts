import type { GetReply, ZooKeeper } from '@incumbent/zookeeper';
import { toJson } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { dataForTerminal, dataToJson, hexDump } from '../output/data.ts';
import { statLines, statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { noteStates, withClient } from '../session.ts';

export async function get(args: Arguments, context: Context): Promise<number> {
  const path = pathOf(args);
  const { signal } = context;
  return withClient(args, context, async (client) => {
    if (args.has('watch')) return follow(client, path, args, context);
    await print(path, await client.get(path, { signal }), args, context);
    return exitCodes.ok;
  });
}

async function follow(
  client: ZooKeeper,
  path: string,
  args: Arguments,
  context: Context,
): Promise<number> {
  noteStates(client, context);
  for await (const value of client.follow(path, { signal: context.signal })) {
    if (value !== undefined) await print(path, value, args, context);
    else if (context.json) await context.print(`${toJson({ path, missing: true })}\n`);
    else context.note(`${path}: there is no such node; waiting for it`);
  }
  context.signal.throwIfAborted();
  return exitCodes.ok;
}

async function print(
  path: string,
  { data, stat }: GetReply,
  args: Arguments,
  context: Context,
): Promise<void> {
  if (context.json) {
    await context.print(`${toJson({ path, ...dataToJson(data), stat: statToJson(stat) })}\n`);
    return;
  }
  const bytes = data ?? new Uint8Array();
  if (args.has('hex')) await context.print(hexDump(bytes));
  else if (context.stdout.isTTY) await context.print(dataForTerminal(bytes));
  else if (bytes.length > 0) await context.print(bytes);
  const isWhole = args.has('hex') || context.stdout.isTTY || bytes.length === 0;
  if (args.has('stat')) {
    // The stat begins on a line of its own.
    const lineEnd = isWhole || bytes.at(-1) === 0x0a ? '' : '\n';
    await context.print(`${lineEnd}${statLines(stat, Date.now()).join('\n')}\n`);
  } else if (args.has('watch') && !isWhole && bytes.at(-1) !== 0x0a) {
    await context.print('\n');
  }
  if (data === null) context.note(`${path} has no data (null)`);
}
