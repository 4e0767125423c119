import { styleText } from 'node:util';
import type { Environment, Output } from './host.ts';

export type Tone = 'good' | 'warn' | 'bad' | 'cold' | 'faint' | 'strong';
export type Paint = (tone: Tone, text: string) => string;

const formats = {
  good: 'green',
  warn: 'yellow',
  bad: 'red',
  cold: 'cyan',
  faint: 'gray',
  strong: 'bold',
} as const;

/** Paints on a terminal only, and not when NO_COLOR is set (no-color.org) or TERM is `dumb`. */
export function painter(output: Output, env: Environment): Paint {
  const colours = output.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  if (!colours) return (_tone, text) => text;
  return (tone, text) => styleText(formats[tone], text, { validateStream: false });
}
