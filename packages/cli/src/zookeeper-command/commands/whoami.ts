import { columns } from '../../terminal/table.ts';
import { toJson, visible } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { withClient } from '../session.ts';

export async function whoami(args: Arguments, context: Context): Promise<number> {
  return withClient(args, context, async (client) => {
    const { identities } = await client.whoAmI({ signal: context.signal });
    const lines = context.json
      ? identities.map(toJson)
      : columns(identities.map(({ scheme, user }) => [visible(scheme), visible(user)]));
    for (const line of lines) await context.print(`${line}\n`);
    return exitCodes.ok;
  });
}
