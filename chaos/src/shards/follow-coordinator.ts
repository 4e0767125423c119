import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/**
 * Calls `listener` whenever this process begins to coordinate the shards of this name: the election of
 * the set has this name.
 * @returns a function that ends it
 */
export function followCoordinator(name: string, listener: () => void): () => void {
  const hear = (message: unknown) => {
    if ((message as { readonly election: string }).election === name) listener();
  };
  subscribe('incumbent:leading', hear);
  return () => {
    unsubscribe('incumbent:leading', hear);
  };
}
