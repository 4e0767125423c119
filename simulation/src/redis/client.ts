import type { AttachedReplica } from './downstream.ts';
import type { Message } from './messages.ts';
import type { Reply } from './reply.ts';
import type { Socket } from './socket.ts';

/** The reason why a client waits; the commands behind it wait too. */
export type Blocked =
  /** XREAD BLOCK. */
  | { readonly by: 'read' }
  | { readonly by: 'wait'; readonly offset: number; readonly replicas: number }
  /** Until writes are not paused any more. */
  | { readonly by: 'pause'; readonly parts: readonly string[] }
  /** SHUTDOWN, until the process ends or will not. */
  | { readonly by: 'shutdown' };

/** A connection, as the server sees it. */
export class Client {
  readonly id: number;
  readonly socket: Socket<Message>;
  readonly peer: string;
  /** Commands that have arrived and are not executed. */
  readonly queue: (readonly string[])[] = [];
  name = '';
  isAuthenticated: boolean;
  blocked: Blocked | undefined;
  /** Between MULTI and EXEC. */
  transaction: { readonly commands: (readonly string[])[]; isBroken: boolean } | undefined;
  replica: AttachedReplica | undefined;
  listeningPort = 0;
  /** The offset that WAIT waits for (`c->woff`). */
  writtenOffset = 0;
  lastCommand = 'NULL';

  constructor(id: number, socket: Socket<Message>, peer: string, isAuthenticated: boolean) {
    this.id = id;
    this.socket = socket;
    this.peer = peer;
    this.isAuthenticated = isAuthenticated;
  }

  answer(reply: Reply): void {
    this.socket.send({ kind: 'reply', reply });
  }
}
