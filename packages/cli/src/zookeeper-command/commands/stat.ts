import { NoNodeError } from '@incumbent/zookeeper';
import { toJson } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { statLines, statToJson } from '../output/stat.ts';
import { pathOf } from '../path.ts';
import { withClient } from '../session.ts';

export async function stat(args: Arguments, context: Context): Promise<number> {
  const path = pathOf(args);
  return withClient(args, context, async (client) => {
    const { stat } = await client.stat(path, { signal: context.signal });
    if (stat === null) throw new NoNodeError({ path });
    const text = context.json
      ? toJson({ path, stat: statToJson(stat) })
      : statLines(stat, Date.now()).join('\n');
    await context.print(`${text}\n`);
    return exitCodes.ok;
  });
}
