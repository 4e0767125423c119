import type { NodeAddress } from '../node-address.ts';
import { NodeUnreachableError } from '../redis/errors.ts';
import type { ConnectionOptions } from './connection.ts';
import { Connection } from './connection.ts';
import type { Driver } from './driver.ts';
import { ClosedError } from './errors.ts';
import type { Picture, Reign } from './view.ts';

type Slot<Client extends object> = {
  readonly opening: Promise<Connection<Client>>;
  connection: Connection<Client> | undefined;
};

type Options = Omit<ConnectionOptions, 'role' | 'runId'> & {
  readonly verifyRole: boolean;
  /** The process of a term's primary, as the record has it. */
  readonly runIdOf: (reign: Reign) => string | undefined;
  /** Whether a manager of the Ruby gem holds its lock, or waits for it. */
  readonly isGemLeading: () => Promise<boolean>;
};

/** One connection to the primary for each term, and one to each replica that is read from. */
export class Connections<Client extends object> {
  readonly #driver: Driver<Client>;
  readonly #options: Options;
  #primary: { readonly reign: Reign; readonly slot: Slot<Client> } | undefined;
  readonly #replicas = new Map<NodeAddress, Slot<Client>>();
  /** Connections of terms that are over. Each is closed after its commands are answered. */
  readonly #leaving = new Map<Slot<Client>, Reign>();
  #closed = false;

  constructor(driver: Driver<Client>, options: Options) {
    this.#driver = driver;
    this.#options = options;
  }

  /** Rejects as `Connection.open` does. */
  primary(reign: Reign): Promise<Connection<Client>> {
    const known = this.#primary;
    if (known?.reign === reign && isAlive(known.slot)) return known.slot.opening;
    // A connection is never used in another term.
    if (known !== undefined) this.#leave(known.slot, known.reign);
    const slot = this.#open(reign.primary, reign, () => {
      if (this.#primary?.slot === slot) this.#primary = undefined;
    });
    this.#primary = { reign, slot };
    return slot.opening;
  }

  replica(address: NodeAddress): Promise<Connection<Client>> {
    const known = this.#replicas.get(address);
    if (known !== undefined && isAlive(known)) return known.opening;
    const slot = this.#open(address, undefined, () => {
      if (this.#replicas.get(address) === slot) this.#replicas.delete(address);
    });
    this.#replicas.set(address, slot);
    return slot.opening;
  }

  /**
   * A connection for one caller alone.
   * @param reign the term of the primary; undefined for a replica
   */
  own(address: NodeAddress, reign: Reign | undefined): Promise<Connection<Client>> {
    return this.#open(address, reign, () => {}).opening;
  }

  /**
   * Gives up the connections to nodes whose role has changed. Commands that were sent may still be
   * answered.
   */
  keep({ replicas }: Picture, reign: Reign | undefined): void {
    if (this.#primary !== undefined && this.#primary.reign !== reign) {
      this.#leave(this.#primary.slot, this.#primary.reign);
      this.#primary = undefined;
    }
    for (const [address, slot] of this.#replicas) {
      if (replicas.includes(address)) continue;
      this.#replicas.delete(address);
      dismiss(slot);
    }
  }

  /**
   * Ends the commands that still wait on connections of terms of which no reply can count any more.
   */
  abandon(isHopeless: (reign: Reign) => boolean): void {
    for (const [{ connection }, reign] of this.#leaving) {
      if (!isHopeless(reign)) continue;
      const why = 'has not answered before another was the primary';
      connection?.close(new NodeUnreachableError(reign.primary, why));
    }
  }

  close(): void {
    this.#closed = true;
    const slots = [...this.#replicas.values(), ...this.#leaving.keys()];
    if (this.#primary !== undefined) slots.push(this.#primary.slot);
    for (const { connection } of slots) connection?.close(new ClosedError());
    this.#replicas.clear();
    this.#primary = undefined;
  }

  #leave(slot: Slot<Client>, reign: Reign): void {
    this.#leaving.set(slot, reign);
    slot.opening.then(
      (connection) => {
        connection.onEnd(() => this.#leaving.delete(slot));
        connection.retire();
      },
      () => this.#leaving.delete(slot),
    );
  }

  #open(address: NodeAddress, reign: Reign | undefined, failed: () => void): Slot<Client> {
    if (this.#closed) {
      const opening = Promise.reject(new ClosedError());
      opening.catch(() => {}); // The caller gets the rejection.
      return { opening, connection: undefined };
    }
    const { verifyRole, runIdOf, ...options } = this.#options;
    const role = reign === undefined ? 'replica' : 'primary';
    const opening = Connection.open(this.#driver, address, {
      ...options,
      role: verifyRole ? role : undefined,
      runId: reign && (() => runIdOf(reign)),
    });
    const slot: Slot<Client> = { opening, connection: undefined };
    opening.then(
      (connection) => {
        slot.connection = connection;
        if (this.#closed) connection.close(new ClosedError());
      },
      failed, // The caller gets the rejection of `opening`.
    );
    return slot;
  }
}

/** Whether the connection is open, or being opened. */
function isAlive<Client extends object>({ connection }: Slot<Client>): boolean {
  return connection === undefined || connection.isOpen;
}

function dismiss<Client extends object>({ opening }: Slot<Client>): void {
  opening.then(
    (connection) => connection.retire(),
    () => {}, // There is no connection to close.
  );
}
