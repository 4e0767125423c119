import process from 'node:process';

/** A child's side of `Child`. It ends when the other side is gone, unless it has closed everything. */
export class Teller<Told extends { readonly say: string }, Order extends string | object> {
  #hasClosed = false;

  constructor(obey: (order: Order) => void) {
    process.on('message', (order) => obey(order as Order));
    process.once('disconnect', () => {
      if (!this.#hasClosed) process.exit();
    });
  }

  /** Resolves when it is on its way. */
  tell(told: Told): Promise<void> {
    return new Promise((resolve) => {
      process.send?.(told, undefined, undefined, () => resolve());
    });
  }

  /** From here on the process ends by itself, as soon as nothing keeps it. */
  closed(): void {
    this.#hasClosed = true;
  }
}
