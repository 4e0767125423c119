import type { Auditor } from '../zookeeper/auditor.ts';

/** A node in the queue, as it is stored. */
export interface StoredPlace {
  readonly path: string;
  /** The number that the store gave its creation: the token of the term it may have. */
  readonly czxid: bigint;
  /** The id of the candidate, as its data says. */
  readonly candidate: string;
}

/** The queue of an election, by a client that takes no part. */
export class Places {
  readonly #auditor: Auditor;
  readonly #node: string;

  constructor(auditor: Auditor, node: string) {
    this.#auditor = auditor;
    this.#node = node;
  }

  /** All places, the oldest first. */
  async list(): Promise<StoredPlace[]> {
    await this.#auditor.sync();
    const names = await this.#auditor.list(this.#node);
    const all = await Promise.all(
      names.map(async (name) => {
        const path = `${this.#node}/${name}`;
        const { mzxid, text } = await this.#auditor.see(path);
        return { path, mzxid, text };
      }),
    );
    return all
      .filter(({ mzxid }) => mzxid > 0n) // gone meanwhile
      .map(({ path, mzxid, text }) => ({ path, czxid: mzxid, candidate: idIn(text) }))
      .sort((a, b) => (a.czxid < b.czxid ? -1 : 1));
  }

  /** As an operator does it. @returns whether there was such a place */
  async delete(token: bigint): Promise<boolean> {
    const place = (await this.list()).find(({ czxid }) => czxid === token);
    if (place !== undefined) await this.#auditor.delete(place.path);
    return place !== undefined;
  }
}

function idIn(text: string): string {
  try {
    const data = JSON.parse(text) as { id?: unknown; candidate?: { id?: unknown } };
    return String(data.candidate?.id ?? data.id);
  } catch {
    return `unreadable: ${text}`;
  }
}
