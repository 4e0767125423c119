import type { Rdb } from './disk.ts';
import type { Reply } from './reply.ts';
import type { Entry } from './stream.ts';

/** A message over a connection to a server or back: clients get replies, replicas the rest. */
export type Message =
  | { readonly kind: 'command'; readonly parts: readonly string[] }
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'full-resync'; readonly replId: string; readonly offset: number }
  | { readonly kind: 'continue'; readonly replId: string }
  /** The first bytes of a whole copy. */
  | { readonly kind: 'copy-begins' }
  /** Its last bytes. @param wasStreamed it never was a file of the primary (`$EOF:`) */
  | { readonly kind: 'copy-ends'; readonly rdb: Rdb; readonly wasStreamed: boolean }
  | { readonly kind: 'entry'; readonly entry: Entry }
  /** Keeps a connection alive, and counts for no offset. */
  | { readonly kind: 'newline' };
