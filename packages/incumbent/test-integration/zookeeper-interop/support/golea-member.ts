import type { ZooKeeper } from '../../../../zookeeper/src/index.ts';

/** Any end of a candidacy in GoLea. */
export class OverError extends Error {
  override readonly name: string = 'OverError';
}

/**
 * A stand-in for a member that uses Comcast's go-leaderelection, of which no binary is available.
 * With a bare client it carries out the operations of the library's source, in the same order.
 */
export class GoLeaMember {
  readonly #client: ZooKeeper;
  readonly #resource: string;
  readonly path: string;

  private constructor(client: ZooKeeper, resource: string, path: string) {
    this.#client = client;
    this.#resource = resource;
    this.path = path;
  }

  /** @throws OverError where DONE is there */
  static async nominate(client: ZooKeeper, resource: string, name: string): Promise<GoLeaMember> {
    const { children } = await client.getChildren(resource);
    refuseDone(children);
    // A plain create: its names carry no guid.
    const { path } = await client.create(`${resource}/le_`, name, {
      ephemeral: true,
      sequential: true,
    });
    return new GoLeaMember(client, resource, path);
  }

  /** Resolves when it leads. @throws OverError */
  async leads(): Promise<void> {
    const done = await this.#client.watch(`${this.#resource}/DONE`);
    const own = await this.#client.watch(this.path);
    for (;;) {
      const { children } = await this.#client.getChildren(this.#resource);
      refuseDone(children);
      const sorted = children.map((name) => `${this.#resource}/${name}`).sort();
      const index = sorted.indexOf(this.path);
      if (index < 0) throw new OverError('not in the list');
      if (index === 0) return;
      const before = await this.#client.watch(sorted[index - 1] as string);
      if (before.value === undefined) continue;
      const first = await Promise.race([
        done.changed.then(() => 'done' as const),
        own.changed.then(() => 'own' as const),
        before.changed,
      ]);
      if (first === 'done') throw new OverError('DONE');
      if (first === 'own') throw new OverError('deleted');
    }
  }

  async resign(): Promise<void> {
    await this.#client.delete(this.path);
  }

  /**
   * A leader that resigns when it hears of the end, as their programs do: else a deletion whose first
   * transaction failed would wait for it.
   * @returns when it has begun to listen, with what resolves when it has left
   */
  async leavesAtEnd(): Promise<{ readonly left: Promise<void> }> {
    const done = await this.#client.watch(`${this.#resource}/DONE`);
    // Its place may have been deleted.
    return { left: done.changed.then(() => this.resign()).catch(() => {}) };
  }

  /** Deletes all candidates in reverse order, and leaves no mark. */
  static async endElection(client: ZooKeeper, resource: string): Promise<void> {
    const { children } = await client.getChildren(resource);
    const transaction = client.transaction();
    for (const name of [...children].sort().reverse()) transaction.delete(`${resource}/${name}`, 0);
    await transaction.commit();
  }

  /**
   * Marks the end, deletes the candidates that it has listed in reverse order, and then the election
   * itself. One that has left meanwhile makes its first transaction fail, for the list is not read
   * again: then it waits for the others to leave. The source gives that up after ten times 10 ms.
   */
  static async deleteElection(client: ZooKeeper, resource: string): Promise<void> {
    await client.create(`${resource}/DONE`, 'done');
    const { children } = await client.getChildren(resource);
    const candidates = [...children].filter((name) => name !== 'DONE').sort();
    const isDone = async () => (await client.getChildren(resource)).children.length === 1;
    for (;;) {
      const transaction = client.transaction();
      for (const name of [...candidates].reverse()) transaction.delete(`${resource}/${name}`, 0);
      const committed = await transaction.commit().then(
        () => true,
        () => false,
      );
      if (committed || (await isDone())) break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await client.transaction().delete(`${resource}/DONE`).delete(resource).commit();
  }
}

function refuseDone(children: readonly string[]): void {
  if (children.some((name) => name.includes('DONE'))) throw new OverError('the election is over');
}
