import type { Backend, ElectionBackend } from 'incumbent';
import { memory } from 'incumbent/memory';

/**
 * A memory store of which some is different.
 * @param only the store, and the one election that is different
 */
export function altered(
  changes: Partial<ElectionBackend<unknown>>,
  only?: { readonly of: Backend; readonly election: string },
): Backend {
  const inner: Backend = only?.of ?? memory();
  return {
    ...inner,
    open(scope) {
      const election = inner.open(scope);
      if (only !== undefined && only.election !== scope.election) return election;
      return new Proxy(election, {
        get(target, name) {
          if (Object.hasOwn(changes, name)) return Reflect.get(changes, name);
          const value = Reflect.get(target, name);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    },
  };
}
