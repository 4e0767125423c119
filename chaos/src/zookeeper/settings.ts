import { parseArgs } from 'node:util';
import type { Broken } from './broken.ts';
import { brokenClients } from './broken.ts';

export interface Settings {
  readonly minutes: number;
  readonly clients: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos:zookeeper -- [options]

  --minutes N      how long (default 30)
  --short          one minute: part of npm test
  --clients N      default 4
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    a client that is broken on purpose: the run must fail
${Object.entries(brokenClients)
  .map(([name, { about }]) => `                     ${name.padEnd(16)} ${about}`)
  .join('\n')}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string' },
      short: { type: 'boolean', default: false },
      clients: { type: 'string', default: '4' },
      seed: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { broken } = values;
  if (broken !== undefined && !Object.hasOwn(brokenClients, broken)) {
    throw new Error(`--broken knows ${Object.keys(brokenClients).join(', ')}, not "${broken}"`);
  }
  return {
    minutes: wholeNumber('--minutes', values.minutes ?? (values.short ? '1' : '30'), 1, 10_000),
    clients: wholeNumber('--clients', values.clients, 2, 50),
    seed: wholeNumber('--seed', values.seed ?? String(Date.now() % 2 ** 32), 0, 2 ** 32 - 1),
    broken: broken as Broken | undefined,
  };
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`${name} must be a whole number from ${least} to ${most}, not "${text}"`);
  }
  return value;
}
