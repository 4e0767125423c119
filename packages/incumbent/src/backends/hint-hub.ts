/** An open connection by which a store wakes waiting candidates. */
export interface HintConnection {
  /** Ends it. Rejections are ignored. */
  close(): Promise<void> | void;
}

export interface HintHubOptions {
  /**
   * Opens the connection. `onHint` reports a change of one election, or of an unknown one. `onLost`
   * may be called any number of times, also before this resolves.
   */
  readonly connect: (
    onHint: (election?: string) => void,
    onLost: (error?: unknown) => void,
  ) => Promise<HintConnection>;
  /** Called once for every time that hints stop working. */
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Hints for all elections of a backend by one connection. It is opened with the first listener, and
 * closed with the last. A store calls `ensure` at every read, which opens the connection again. So
 * it has no timer, and waiting candidates poll as long as it cannot be opened. Nothing is thrown.
 */
export class HintHub {
  readonly #options: HintHubOptions;
  readonly #listeners = new Map<string, Set<() => void>>();
  #attempt: Attempt | undefined;
  #isTroubled = false;
  /** When the last hint of each election came, by the number of that hint. */
  readonly #hints = new Map<string, number>();
  #hintsSoFar = 0;

  constructor(options: HintHubOptions) {
    this.#options = options;
  }

  /** True while the connection is open: changes from now on are reported. */
  get isOpen(): boolean {
    return this.#attempt?.connection !== undefined && !this.#attempt.isDoubted;
  }

  /**
   * Changes with every hint of the election, and whenever a hint may have got lost. Undefined while
   * no listener waits for that election.
   */
  lastHint(election: string): number | undefined {
    return this.#hints.get(election);
  }

  /**
   * A look has shown a change without its hint. A connection that nothing is sent on may be dead
   * for hours before this process is told. Or the hint is on its way. So the connection is only
   * doubted, until anything comes by it, or until `ensure` gives it up.
   */
  doubt(): void {
    if (this.#attempt?.connection !== undefined) this.#attempt.isDoubted = true;
  }

  get isDoubted(): boolean {
    return this.#attempt?.isDoubted === true;
  }

  /** @returns a function that ends it */
  add(election: string, onHint: () => void): () => void {
    // A new function each time: the same listener may be given twice.
    const listener = () => onHint();
    const listeners = this.#listeners.get(election) ?? new Set();
    this.#listeners.set(election, listeners.add(listener));
    this.#count(election);
    this.ensure();
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(election) !== listeners) return;
      this.#listeners.delete(election);
      this.#hints.delete(election);
      if (this.#listeners.size === 0) void this.#drop();
    };
  }

  /**
   * Opens the connection if there is a listener and it is not open.
   * @param wasDoubted true if it was doubted when an operation began that has been answered since.
   * If it still is, another connection is opened
   */
  ensure(wasDoubted = false): void {
    if (wasDoubted && this.#attempt?.isDoubted === true) {
      this.#attempt.lose(new Error('the connection for wake-ups has missed news, and is given up'));
    }
    if (this.#attempt !== undefined || this.#listeners.size === 0) return;
    const onHint = (election?: string) => {
      if (attempt.isOver) return;
      attempt.isDoubted = false;
      this.#raise(election);
    };
    const onLost = (error?: unknown) => {
      if (attempt.isOver) return;
      this.#complain(error ?? new Error('the connection for wake-ups has ended'));
      const wasOpen = attempt.connection !== undefined;
      void this.#drop();
      // Listeners that relied on it must look for themselves from now on.
      if (wasOpen) this.#raise();
    };
    const attempt: Attempt = {
      connection: undefined,
      isOver: false,
      isDoubted: false,
      lose: onLost,
    };
    this.#attempt = attempt;
    void this.#open(attempt, onHint, onLost);
  }

  /** Closes for ever. The listeners are not called any more. */
  async close(): Promise<void> {
    this.#listeners.clear();
    this.#hints.clear();
    await this.#drop();
  }

  async #open(
    attempt: Attempt,
    onHint: (election?: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<void> {
    try {
      const connection = await this.#options.connect(onHint, onLost);
      if (attempt.isOver) return await end(connection);
      attempt.connection = connection;
      this.#isTroubled = false;
      // Changes from before it was open were not reported.
      this.#raise();
    } catch (error) {
      onLost(error);
    }
  }

  async #drop(): Promise<void> {
    const attempt = this.#attempt;
    this.#attempt = undefined;
    if (attempt === undefined) return;
    attempt.isOver = true;
    if (attempt.connection !== undefined) await end(attempt.connection);
  }

  #raise(election?: string): void {
    for (const each of election === undefined ? this.#listeners.keys() : [election]) {
      this.#count(each);
    }
    const told =
      election === undefined
        ? [...this.#listeners.values()].flatMap((listeners) => [...listeners])
        : [...(this.#listeners.get(election) ?? [])];
    for (const listener of told) listener();
  }

  #count(election: string): void {
    this.#hintsSoFar += 1;
    if (this.#listeners.has(election)) this.#hints.set(election, this.#hintsSoFar);
  }

  /** Complains once, however often it is tried again. */
  #complain(error: unknown): void {
    if (this.#isTroubled) return;
    this.#isTroubled = true;
    this.#options.onTrouble(error);
  }
}

interface Attempt {
  connection: HintConnection | undefined;
  isOver: boolean;
  isDoubted: boolean;
  readonly lose: (error?: unknown) => void;
}

async function end(connection: HintConnection): Promise<void> {
  try {
    await connection.close();
  } catch {
    // The connection is given up, however its closing ends.
  }
}
