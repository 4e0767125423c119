/** Services and clients that are broken on purpose: a run that does not find them proves nothing. */
import type { Election, Term, View } from 'incumbent';

export type Broken = 'no-check' | 'trusts-signal' | 'deaf-clients' | 'keeps-open';

export const brokenWays: Readonly<Record<Broken, { readonly about: string }>> = {
  'no-check': { about: 'services serve whether they lead or not' },
  'trusts-signal': { about: 'services lead until their signal has told otherwise' },
  'deaf-clients': { about: 'clients know the first leader alone' },
  'keeps-open': { about: 'clients close nothing' },
};

/** A term that goes by its signal: after a freeze that comes later than the calls. */
export function trustingSignal(term: Term): Term {
  const leads = () => !term.signal.aborted;
  return overlay(term, {
    isLeading: leads,
    remaining: () => (leads() ? 1_000 : 0),
    assertLeading: () => term.signal.throwIfAborted(),
  });
}

/** An election whose observers hear of the first leader, and then nothing more. */
export function deafAfterFirst(election: Election): Election {
  let first: View | undefined;
  return overlay(election, {
    leader: async (options: Parameters<Election['leader']>[0]) => {
      return first ?? election.leader(options);
    },
    observe: (options: Parameters<Election['observe']>[0]) => {
      const views = election.observe(options);
      return overlay(views, {
        async next() {
          if (first !== undefined) return new Promise<never>(() => {});
          const step = await views.next();
          if (!step.done && step.value.state === 'led') first = step.value;
          return step;
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      });
    },
  });
}

/** The same object but for a few of its methods; the others are called on the object itself. */
function overlay<T extends object>(object: T, methods: object & ThisType<T>): T {
  return new Proxy(object, {
    get(target, key, receiver) {
      if (Object.hasOwn(methods, key)) {
        const method: unknown = Reflect.get(methods, key);
        return typeof method === 'function' ? method.bind(receiver) : method;
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
