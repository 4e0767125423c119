import { toJson, visible } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes, UsageError } from '../failure.ts';
import { statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { readData } from '../read-data.ts';
import { withClient } from '../session.ts';

export async function set(args: Arguments, context: Context): Promise<number> {
  const path = pathOf(args);
  const version = args.nodeVersion();
  const data = await readData(args, context);
  if (data === undefined) {
    throw new UsageError("`set` needs DATA, - for stdin, or --file; '' empties the node");
  }
  return withClient(args, context, async (client) => {
    const { stat } = await client.set(path, data, { version, signal: context.signal });
    const text = context.json
      ? toJson({ path, stat: statToJson(stat) })
      : `${visible(path)} has version ${stat.version} now`;
    await context.print(`${text}\n`);
    return exitCodes.ok;
  });
}
