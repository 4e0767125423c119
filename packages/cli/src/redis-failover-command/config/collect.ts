import type { Environment } from '../context.ts';
import { UsageError } from '../failure.ts';
import type { Given } from './given.ts';
import { ranks } from './given.ts';
import type { Setting, SettingKey } from './settings.ts';
import { camelCase, flagsOf } from './settings.ts';

/** The command line as commander read it: values by the names of flags in camel case. */
export type FlagValues = Readonly<Record<string, unknown>>;

export type Settings = ReadonlyMap<SettingKey, Given>;

/** Flags win over variables, and both over the file. */
export async function collectSettings(
  settings: readonly Setting[],
  flags: FlagValues,
  { env, cwd }: { readonly env: Environment; readonly cwd: string },
): Promise<Settings> {
  refusePassword(flags);
  const given = new Map<SettingKey, Given>();
  const { config, environment } = flags;
  if (typeof config === 'string') {
    // Loaded only where it is needed: it reads YAML.
    const { readConfigurationFile } = await import('./yaml-file.ts');
    const chosen = typeof environment === 'string' ? environment : undefined;
    for (const [key, value] of await readConfigurationFile(config, chosen, cwd)) {
      given.set(key, value);
    }
  } else if (environment !== undefined) {
    throw new UsageError('--environment chooses a section of a file: give --config FILE with it');
  }
  for (const { key, variable } of settings) {
    const value = variable === undefined ? undefined : env[variable];
    if (variable === undefined || value === undefined || value === '') continue;
    given.set(key, { value, name: variable, where: '', rank: ranks.variable });
  }
  for (const setting of settings) {
    const names = flagsOf(setting).filter((flag) => flags[camelCase(flag)] !== undefined);
    const [name, second] = names;
    if (second !== undefined) throw new UsageError(`--${name} and --${second} are the same option`);
    if (name === undefined) continue;
    const value = flags[camelCase(name)];
    given.set(setting.key, { value, name: `--${name}`, where: '', rank: ranks.flag });
  }
  return given;
}

/** For settings whose rules are not those of the manager. */
export function textOf(settings: Settings, key: SettingKey): string | undefined {
  const given = settings.get(key);
  return given === undefined ? undefined : String(given.value);
}

/** No part of the password is repeated. */
function refusePassword({ password }: FlagValues): void {
  if (password === undefined) return;
  throw new UsageError(
    'a password on the command line can be read by everybody on this machine: give it in a file ' +
      '(--password-file), in INCUMBENT_REDIS_PASSWORD, or in the configuration file (password_file, password)',
  );
}
