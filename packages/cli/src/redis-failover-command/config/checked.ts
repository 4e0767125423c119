import { resolveOptions } from '@incumbent/redis-failover/internal';
import { InvalidOptionError } from 'incumbent';
import { SettingError } from '../failure.ts';
import type { Given } from './given.ts';

/**
 * Refuses what the manager would refuse. The message uses the name by which the value was given.
 */
export function checked(given: Given, name: string, value: unknown): unknown {
  try {
    resolveOptions({ nodes: ['localhost:6379'], zookeeper: 'localhost', [name]: value });
  } catch (error) {
    if (!(error instanceof InvalidOptionError) || !error.message.startsWith(name)) throw error;
    const rest = error.message.slice(name.length);
    const index = Number(/^\[(\d+)\]/.exec(rest)?.[1] ?? Number.NaN);
    throw new SettingError(`${given.items?.[index] ?? given.where}${given.name}${rest}`);
  }
  return value;
}
