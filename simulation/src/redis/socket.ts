import type { Link } from './link.ts';
import { Pipe } from './link.ts';
import type { Scheduler } from './scheduler.ts';

/** Whose code reads a socket. */
export interface Reader {
  /** Runs it now, or when the process goes on; never once it is dead. */
  read(run: () => void): void;
  /** Whether a machine is there that says that a connection is gone. */
  readonly answers: boolean;
}

type Item<Message> = { readonly data: Message } | 'end';

export interface SocketHandlers<Message> {
  message(message: Message): void;
  /** The other end is gone. Not called after `close` of this end. */
  end(): void;
}

/** One end of a connection. */
export class Socket<Message> {
  handlers: SocketHandlers<Message> | undefined;
  readonly #reader: Reader;
  #out: Pipe<Item<Message>> | undefined;
  #link: Link | undefined;
  #breakIt: (() => void) | undefined;
  #isOpen = true;
  /** Closed here, while another process has it open. */
  #isShared = false;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Two ends of one connection over this way. */
  static join<Message>(
    scheduler: Scheduler,
    link: Link,
    caller: Socket<Message>,
    listener: Socket<Message>,
  ): void {
    const forth = new Pipe<Item<Message>>(scheduler, link.forth, (item) => listener.#arrive(item));
    const back = new Pipe<Item<Message>>(scheduler, link.back, (item) => caller.#arrive(item));
    caller.#out = forth;
    listener.#out = back;
    const breakIt = () => {
      link.offReset(breakIt);
      forth.clear();
      back.clear();
      caller.#read('end');
      listener.#read('end');
    };
    caller.#link = link;
    listener.#link = link;
    caller.#breakIt = breakIt;
    listener.#breakIt = breakIt;
    link.onReset(breakIt);
    if (!caller.#isOpen) forth.push('end');
  }

  send(message: Message): void {
    if (this.#isOpen) this.#out?.push({ data: message });
  }

  /** The other end is told when that arrives. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#out?.push('end');
  }

  /** Another process has it open: the other end is told of nothing. @returns tells it after all */
  closeHere(): () => void {
    if (!this.#isOpen) return () => {};
    this.#isOpen = false;
    this.#isShared = true;
    return () => {
      this.#isShared = false;
      this.#out?.push('end');
    };
  }

  /** The machine is gone: nobody is told. */
  vanish(): void {
    this.#isOpen = false;
  }

  #arrive(item: Item<Message>): void {
    if (this.#isOpen) {
      this.#read(item);
      return;
    }
    // A reset is what a machine answers for a connection that it does not know.
    const isUnknown = this.#reader.answers && !this.#isShared;
    if (item !== 'end' && isUnknown) this.#out?.push('end');
    if (item === 'end') this.#forget();
  }

  #read(item: Item<Message>): void {
    this.#reader.read(() => {
      if (!this.#isOpen) return;
      if (item !== 'end') return this.handlers?.message(item.data);
      this.close();
      this.#forget();
      this.handlers?.end();
    });
  }

  #forget(): void {
    if (this.#breakIt !== undefined) this.#link?.offReset(this.#breakIt);
  }
}
