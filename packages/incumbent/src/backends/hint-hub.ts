/** What is under way on the one connection by which a store wakes those who wait. */
export interface HintConnection {
  /** Ends it. Rejections are ignored. */
  close(): Promise<void> | void;
}

export interface HintHubOptions {
  /**
   * Opens the connection. `onHint` tells of a change of one election, or of any if nobody knows of
   * which; `onLost` may be called as often as one likes, also before it resolves.
   */
  readonly connect: (
    onHint: (election?: string) => void,
    onLost: (error?: unknown) => void,
  ) => Promise<HintConnection>;
  /** Told once for every time that hints stop working. */
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Hints for all elections of a backend by one connection. It is opened when somebody listens, closed
 * when nobody does, and opened again by `ensure`, which a store calls at every read: so it has no
 * timer, and those who wait poll as long as it cannot be opened. Nothing is thrown.
 */
export class HintHub {
  readonly #options: HintHubOptions;
  readonly #listeners = new Map<string, Set<() => void>>();
  #attempt: Attempt | undefined;
  #isTroubled = false;
  /** When the last hint of each election was, by their number. */
  readonly #hints = new Map<string, number>();
  #hintsSoFar = 0;

  constructor(options: HintHubOptions) {
    this.#options = options;
  }

  /** True while the connection is open: what happens now will be told. */
  get isOpen(): boolean {
    return this.#attempt?.connection !== undefined && !this.#attempt.isDoubted;
  }

  /**
   * Another value after every hint of the election, and after whatever may have made one get lost.
   * Undefined while nobody listens for it.
   */
  lastHint(election: string): number | undefined {
    return this.#hints.get(election);
  }

  /**
   * A look has shown what a hint should have announced, and none had come: a connection that nothing
   * is sent on may be dead for hours before anybody is told. Or the hint is on its way: so the
   * connection is only doubted, until anything comes by it, or until `ensure` gives it up.
   */
  doubt(): void {
    if (this.#attempt?.connection !== undefined) this.#attempt.isDoubted = true;
  }

  get isDoubted(): boolean {
    return this.#attempt?.isDoubted === true;
  }

  /** @returns a function that ends it */
  add(election: string, onHint: () => void): () => void {
    // A function of its own each time: the same one may be given twice.
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
   * Opens the connection if somebody listens and it is not open.
   * @param wasDoubted it was when an operation began that has been answered since: if it still is,
   * another one is opened
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
      // Those who relied on it shall look for themselves from now on.
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

  /** For ever: whoever still listens is told nothing any more. */
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
      // What happened before it was open has been told to nobody.
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

  /** Once, however often it is tried again. */
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
    // It is given up: nobody waits for how it ends.
  }
}
