/** Which set of Redis servers a command is about. */
import type { NodeAccess } from '@incumbent/redis-failover';
import { accessOf } from '../config/access.ts';
import type { FlagValues } from '../config/collect.ts';
import { collectSettings } from '../config/collect.ts';
import type { Place } from '../config/place.ts';
import { placeOf } from '../config/place.ts';
import { commonSettings } from '../config/settings.ts';
import type { Context } from '../context.ts';

/** The same settings as `manage` has, so that one configuration file does for all commands. */
export async function placeFrom(flags: FlagValues, context: Context): Promise<Place> {
  return placeOf(await collectSettings(commonSettings, flags, context), context);
}

/** For commands that ask the Redis servers, too. */
export async function placeAndAccess(
  flags: FlagValues,
  context: Context,
): Promise<{ readonly place: Place; readonly access: NodeAccess }> {
  const settings = await collectSettings(commonSettings, flags, context);
  const place = await placeOf(settings, context);
  return { place, access: await accessOf(settings, context.cwd) };
}
