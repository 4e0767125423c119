import { toJson, visibleLines } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { withClient } from '../session.ts';

export async function config(args: Arguments, context: Context): Promise<number> {
  return withClient(args, context, async (client) => {
    const { text } = await client.getConfig({ signal: context.signal });
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    if (context.json) {
      // The version is hexadecimal, as the server writes it.
      const version = lines.find((line) => line.startsWith('version='))?.slice('version='.length);
      const servers = lines.filter((line) => line.startsWith('server.'));
      await context.print(`${toJson({ version: version ?? null, servers })}\n`);
    } else {
      await context.print(lines.map((line) => `${visibleLines(line)}\n`).join(''));
      if (lines.length === 0) context.note('the ensemble has no configuration: a single server');
    }
    return exitCodes.ok;
  });
}
