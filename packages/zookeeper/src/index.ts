export type { Acl } from './protocol/messages.ts';
export type { Stat } from './protocol/stat.ts';
