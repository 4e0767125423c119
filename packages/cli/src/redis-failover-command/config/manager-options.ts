/** The options of a manager. Their rules are the manager's own; here stands where each was given. */
import type { ManagerOptions, NodeAccess } from '@incumbent/redis-failover';
import { SettingError } from '../failure.ts';
import { checked } from './checked.ts';
import type { Settings } from './collect.ts';
import type { Given } from './given.ts';
import { quote, refuse } from './given.ts';
import type { Place } from './place.ts';
import type { Setting, SettingKey } from './settings.ts';
import { camelCase, managerSettings } from './settings.ts';

/** The settings that `manage` itself uses. */
const ownKeys: ReadonlySet<string> = new Set<SettingKey>(['listen', 'log_level', 'log_format']);

/** @throws SettingError that says where the bad value was given */
export function managerOptions(
  settings: Settings,
  place: Place,
  access: NodeAccess,
): ManagerOptions {
  const nodes = settings.get('nodes');
  if (nodes === undefined) {
    throw new SettingError(
      'it is not said which Redis servers there are: give --nodes HOST:PORT,HOST:PORT, or nodes in a ' +
        'configuration file (--config)',
    );
  }
  const options: Record<string, unknown> = {};
  for (const setting of managerSettings) {
    const given = settings.get(setting.key);
    if (given === undefined || ownKeys.has(setting.key)) continue;
    const name = camelCase(setting.key);
    options[name] = checked(given, name, convert(setting, given));
  }
  return { ...(options as unknown as ManagerOptions), ...place, ...access };
}

/** Converts a text from a flag or a variable to the value that it stands for. */
export function convert({ kind, choices }: Setting, given: Given): unknown {
  const { value } = given;
  switch (kind) {
    case 'count':
      return typeof value === 'string' && given.where === '' && /^\d+$/.test(value)
        ? Number(value)
        : value;
    case 'list':
      return Array.isArray(value)
        ? value
        : String(value)
            .split(',')
            .map((each) => each.trim());
    case 'duration':
      return duration(given);
    case 'switch':
      if (typeof value !== 'boolean') refuse(given, `is true or false, not ${quote(value)}`);
      return value;
    case 'choice':
      if (!choices?.includes(String(value))) {
        refuse(given, `is one of ${choices?.join(', ')}, not ${quote(value)}`);
      }
      return value;
    case 'text':
      return String(value);
    default:
      return kind satisfies never;
  }
}

/**
 * A unit is required. Some readers would take a bare number for seconds, others for milliseconds.
 */
function duration(given: Given): string {
  const text = String(given.value).trim();
  if (/^(?:\d+(?:\.\d+)?|\.\d+)\s*(?:ms|s|m|h)$/.test(text)) return text;
  const why = /^[\d.]+$/.test(text) ? 'has no unit' : 'is not a duration';
  return refuse(given, `${quote(text)} ${why}: write 500ms, 15s, 2m or 1h`);
}
