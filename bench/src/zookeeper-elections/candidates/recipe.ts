/** The election recipe of the ZooKeeper documentation, as users of a bare client write it. */
import type { Candidate } from './candidate.ts';

/** The five calls that it takes. */
export interface RecipeClient {
  /** Creates a persistent node and what is above it; one that is there is success. */
  ensure(path: string): Promise<void>;
  /** Creates an ephemeral sequential node. @returns its path */
  enter(prefix: string): Promise<string>;
  children(path: string): Promise<readonly string[]>;
  /** Watches a node until it changes. @returns false when it is not there */
  watch(path: string, changed: () => void): Promise<boolean>;
  remove(path: string): Promise<void>;
  /** Has the quorum confirm that a node is there, before its owner leads. */
  check?(path: string): Promise<void>;
}

const sequenceDigits = 10;

/** @param root where its elections are */
export function recipe(client: RecipeClient, root: string): Candidate {
  return {
    async campaign(election) {
      const path = `${root}/${election}`;
      await client.ensure(path);
      const own = await client.enter(`${path}/n_`);
      const name = own.slice(path.length + 1);
      for (;;) {
        const names = inOrder(await client.children(path));
        const before = names[names.indexOf(name) - 1];
        if (before === undefined) break;
        let changed = () => {};
        const change = new Promise<void>((resolve) => {
          changed = resolve;
        });
        if (await client.watch(`${path}/${before}`, changed)) await change;
      }
      await client.check?.(own);
      return { token: null, resign: () => client.remove(own) };
    },
  };
}

function inOrder(names: readonly string[]): string[] {
  const sequence = (name: string) => name.slice(-sequenceDigits);
  return [...names].sort((a, b) => (sequence(a) < sequence(b) ? -1 : 1));
}
