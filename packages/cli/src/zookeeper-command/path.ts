import { checkPath } from '@incumbent/zookeeper/internal';
import type { Arguments } from './arguments.ts';

/** The first operand, `/` where it may be left out. @throws InvalidArgumentError */
export function pathOf(args: Arguments, sequential = false): string {
  const path = args.operands[0] ?? '/';
  checkPath(path, sequential);
  return path;
}
