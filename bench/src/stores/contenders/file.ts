import { file } from 'incumbent/file';
import type { OpenContender } from './contender.ts';
import { ours } from './ours.ts';

export const open: OpenContender = async ({ directory }, leaseMs) =>
  ours(file(directory), { lease: leaseMs });
