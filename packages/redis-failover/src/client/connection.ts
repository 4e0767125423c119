import type { Clock } from '@incumbent/zookeeper';
import { formatDuration } from 'incumbent';
import { systemClock } from '../clock.ts';
import type { NodeAddress } from '../node-address.ts';
import { parseNodeAddress } from '../node-address.ts';
import { errorOfReply, NodeRefusedError, NodeUnreachableError } from '../redis/errors.ts';
import { setPatience } from '../redis/patience.ts';
import type { Driver, DriverConnection } from './driver.ts';
import { NotSentError, WrongRoleError } from './errors.ts';
import { isReply } from './outcome.ts';

export interface ConnectionOptions {
  readonly connectTimeoutMs: number;
  /** The limit for the reply to each command. The connection is closed after it. */
  readonly commandTimeoutMs: number;
  /** The role that the node must report; undefined: it is not verified. */
  readonly role: 'primary' | 'replica' | undefined;
  /**
   * The process of the primary that may be written to, or undefined for any. Called after the node
   * has answered.
   */
  readonly runId?: (() => string | undefined) | undefined;
  /**
   * Whether managers of the gem lead. They record no processes, so then any process of the primary
   * may be written to.
   */
  readonly isGemLeading?: (() => Promise<boolean>) | undefined;
  readonly clock: Clock;
  /** Default: the machine's. */
  readonly timers?: Clock | undefined;
}

/** A connection to one node, for one term of the primary. */
export class Connection<Client extends object> {
  readonly address: NodeAddress;
  /** When the connection was ready, on the monotonic clock. */
  readonly establishedMs: number;
  readonly #driver: DriverConnection<Client>;
  readonly #commandTimeoutMs: number;
  readonly #timers: Clock;
  readonly #rejectAll = new Set<(error: Error) => void>();
  readonly #onEnd = new Set<() => void>();
  #retired = false;
  #closed = false;

  private constructor(
    address: NodeAddress,
    driver: DriverConnection<Client>,
    commandTimeoutMs: number,
    establishedMs: number,
    timers: Clock,
  ) {
    this.#timers = timers;
    this.address = address;
    this.establishedMs = establishedMs;
    this.#driver = driver;
    this.#commandTimeoutMs = commandTimeoutMs;
    driver.onClose(() => {
      if (!driver.isOpen) this.close();
    });
  }

  /**
   * Connects, logs in, and verifies the node's role once.
   * @returns rejects with NodeUnreachableError, NodeRefusedError or WrongRoleError; no command was
   *   sent that changes anything
   */
  static async open<Client extends object>(
    driver: Driver<Client>,
    address: NodeAddress,
    options: ConnectionOptions,
  ): Promise<Connection<Client>> {
    const { connectTimeoutMs, commandTimeoutMs, clock, timers = systemClock } = options;
    const connection = driver.open(parseNodeAddress('the node', address));
    let giveUp: () => void = () => {};
    const timeUp = new Promise<never>((_, reject) => {
      const expire = () => {
        const why = `did not answer within ${formatDuration(connectTimeoutMs)}`;
        reject(new NodeUnreachableError(address, why));
      };
      giveUp = setPatience(connectTimeoutMs, expire, timers);
    });
    try {
      await Promise.race([prepare(connection, address, options), timeUp]);
      const establishedMs = clock.monotonicMs();
      return new Connection(address, connection, commandTimeoutMs, establishedMs, timers);
    } catch (error) {
      connection.close();
      throw error;
    } finally {
      giveUp();
    }
  }

  get isOpen(): boolean {
    return !this.#closed && this.#driver.isOpen;
  }

  /**
   * Calls `send` with the client. Rejects with NotSentError if the connection is closed, with the
   * driver's error, or with NodeUnreachableError if no reply comes in time.
   */
  run<Value>(send: (client: Client) => Value | Promise<Value>): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      if (!this.isOpen) {
        reject(new NotSentError(`the connection to ${this.address} is closed`));
        return;
      }
      const finish = (settle: () => void) => {
        forgetTimer();
        this.#rejectAll.delete(fail);
        settle();
        if (this.#retired && this.#rejectAll.size === 0) this.close();
      };
      const fail = (error: Error) => finish(() => reject(error));
      this.#rejectAll.add(fail);
      const expire = () => {
        const why = `did not answer within ${formatDuration(this.#commandTimeoutMs)}`;
        const error = new NodeUnreachableError(this.address, why);
        fail(error);
        this.close(error);
      };
      const forgetTimer = setPatience(this.#commandTimeoutMs, expire, this.#timers);
      // An error that the driver throws at once means that nothing was sent. `kindOf` judges it
      // like any other.
      new Promise<Value>((done) => done(send(this.#driver.client))).then(
        (value) => finish(() => resolve(value)),
        fail,
      );
    });
  }

  /** The driver's client, for a caller that has this connection alone. */
  get client(): Client {
    return this.#driver.client;
  }

  /** Calls `listener` when the connection is closed, for whatever reason. */
  onEnd(listener: () => void): void {
    if (this.#closed) listener();
    else this.#onEnd.add(listener);
  }

  /** Closes the connection after the commands that were sent are answered. */
  retire(): void {
    this.#retired = true;
    if (this.#rejectAll.size === 0) this.close();
  }

  /** Closes it at once. Commands that are not answered reject: their outcome is unknown. */
  close(why?: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#driver.close();
    const error = why ?? new NodeUnreachableError(this.address, 'has ended the connection');
    for (const reject of [...this.#rejectAll]) reject(error);
    for (const listener of this.#onEnd) listener();
  }
}

async function prepare<Client extends object>(
  connection: DriverConnection<Client>,
  address: NodeAddress,
  { role, runId, isGemLeading }: ConnectionOptions,
): Promise<void> {
  try {
    await connection.connect();
  } catch (error) {
    if (isReply(error)) throw errorOfReply(address, 'the login', error as Error);
    throw new NodeUnreachableError(
      address,
      `cannot be reached: ${(error as Error).message}`,
      error,
    );
  }
  if (role === undefined) return;
  const isOnRecord = runId?.() !== undefined;
  const [answer, info] = await Promise.all([
    ask(connection, address, ['ROLE']),
    isOnRecord ? ask(connection, address, ['INFO', 'server']) : undefined,
  ]);
  const word = String(Array.isArray(answer) ? answer[0] : answer);
  const is = word === 'master' ? 'primary' : word === 'slave' ? 'replica' : word;
  if (is !== role) {
    throw new WrongRoleError(
      `ZooKeeper says that ${address} is a ${role}, and it says itself: ${is}`,
    );
  }
  const runs = /^run_id:(\w+)/m.exec(String(info ?? ''))?.[1];
  const expected = runId?.();
  if (runs === undefined || expected === undefined || runs === expected) return;
  // Under managers of the gem the record is an old one of ours, which nobody updates.
  if ((await isGemLeading?.()) === true) return;
  throw new WrongRoleError(
    `${address} was started anew, and no manager has said yet that it has all its data: it runs as ` +
      `${runs}, and ZooKeeper says ${expected}`,
  );
}

async function ask<Client extends object>(
  connection: DriverConnection<Client>,
  address: NodeAddress,
  command: readonly [string, ...string[]],
): Promise<unknown> {
  const [word] = command;
  try {
    return await connection.command(command);
  } catch (error) {
    const { message } = error as Error;
    if (!isReply(error)) {
      throw new NodeUnreachableError(address, `ended the connection: ${message}`, error);
    }
    if (message.startsWith('NOPERM')) {
      const rule = `ACL SETUSER … +${word.toLowerCase()}`;
      const how = `allow ${word} to this user (${rule}), or set verifyRole: false`;
      throw new NodeRefusedError(address, how, message, error);
    }
    throw errorOfReply(address, word, error as Error);
  }
}
