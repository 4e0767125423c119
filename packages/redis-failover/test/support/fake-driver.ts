import type { Driver, DriverConnection } from '../../src/client/driver.ts';
import type { HostAndPort } from '../../src/node-address.ts';
import { formatNodeAddress } from '../../src/node-address.ts';

/** Errors of both drivers are recognized by the name of their class. */
export class ReplyError extends Error {}

/** One command that a client was asked to send. The test answers it. */
export class Sent {
  readonly words: readonly unknown[];
  readonly result: Promise<unknown>;
  reply: (value: unknown) => void = () => {};
  fail: (error: unknown) => void = () => {};

  constructor(words: readonly unknown[]) {
    this.words = words;
    this.result = new Promise((resolve, reject) => {
      this.reply = resolve;
      this.fail = reject;
    });
    this.result.catch(() => {}); // the caller hears of it
  }
}

/** A client of the fake driver. It records each call, and the test answers it. */
export class FakeClient {
  readonly sent: Sent[] = [];

  get(...args: unknown[]): Promise<unknown> {
    return this.#note('get', args);
  }
  set(...args: unknown[]): Promise<unknown> {
    return this.#note('set', args);
  }
  incr(...args: unknown[]): Promise<unknown> {
    return this.#note('incr', args);
  }
  wait(...args: unknown[]): Promise<unknown> {
    return this.#note('wait', args);
  }
  scan(...args: unknown[]): Promise<unknown> {
    return this.#note('scan', args);
  }
  eval(...args: unknown[]): Promise<unknown> {
    return this.#note('eval', args);
  }
  sendCommand(...args: unknown[]): Promise<unknown> {
    return this.#note('sendCommand', args);
  }
  subscribe(...args: unknown[]): Promise<unknown> {
    return this.#note('subscribe', args);
  }
  *scanIterator(): Generator<Promise<unknown>> {
    for (;;) yield this.scan('0');
  }
  multi(): { exec(...args: unknown[]): Promise<unknown>; set(...args: unknown[]): unknown } {
    const calls: unknown[] = [];
    const chain = {
      set: (...args: unknown[]) => {
        calls.push(['set', ...args]);
        return chain;
      },
      exec: (...args: unknown[]) => this.#note('multi', [calls, ...args]),
    };
    return chain;
  }
  pipeline(): ReturnType<FakeClient['multi']> {
    return this.multi();
  }

  /** The latest command that was sent. */
  get last(): Sent {
    const last = this.sent.at(-1);
    if (last === undefined) throw new Error('nothing was sent');
    return last;
  }

  #note(name: string, args: readonly unknown[]): Promise<unknown> {
    const sent = new Sent([name, ...args]);
    this.sent.push(sent);
    return sent.result;
  }
}

/**
 * A connection of the fake driver. By default it connects, and answers as the test has set its node
 * up.
 */
export class FakeConnection implements DriverConnection<FakeClient> {
  readonly address: string;
  readonly client: FakeClient = new FakeClient();
  /** The calls of `command`: ROLE and INFO. */
  readonly asked: string[][] = [];
  closes = 0;
  connected = false;
  readonly #driver: FakeDriver;
  readonly #listeners: (() => void)[] = [];

  constructor(driver: FakeDriver, address: string) {
    this.#driver = driver;
    this.address = address;
  }

  get isOpen(): boolean {
    return this.connected && this.closes === 0;
  }

  async connect(): Promise<void> {
    await this.#driver.connect(this);
    this.connected = true;
  }

  command(parts: readonly string[]): Promise<unknown> {
    this.asked.push([...parts]);
    return this.#driver.answer(this, parts);
  }

  close(): void {
    this.closes += 1;
  }

  onClose(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Ends the connection, as the node or the network does. */
  breakOff(): void {
    this.connected = false;
    this.tell();
  }

  /** The driver reports an error. The connection may still be open. */
  tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

export class FakeDriver implements Driver<FakeClient> {
  readonly name = 'node-redis';
  readonly model: FakeClient = new FakeClient();
  readonly own: ReadonlySet<string> = new Set();
  readonly opened: FakeConnection[] = [];
  readonly roles = new Map<string, string>();
  readonly runIds = new Map<string, string>();
  /** The result of connecting; by default it succeeds. */
  connect: (connection: FakeConnection) => Promise<void> = async () => {};
  answer: (connection: FakeConnection, parts: readonly string[]) => Promise<unknown> = async (
    { address },
    [word],
  ) => {
    if (word === 'ROLE') return [this.roles.get(address) ?? 'slave'];
    return `# Server\r\nrun_id:${this.runIds.get(address) ?? 'none'}\r\n`;
  };

  open(address: HostAndPort): FakeConnection {
    const connection = new FakeConnection(this, formatNodeAddress(address));
    this.opened.push(connection);
    return connection;
  }

  /** All connections to a node, in the order in which they were made. */
  to(address: string): FakeConnection[] {
    return this.opened.filter((each) => each.address === address);
  }

  /** The latest connection to a node. */
  at(address: string): FakeConnection {
    const last = this.to(address).at(-1);
    if (last === undefined) throw new Error(`there is no connection to ${address}`);
    return last;
  }
}
