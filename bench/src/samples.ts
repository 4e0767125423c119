/** Numbers, by what they are of. */
export interface Samples {
  add(key: string, ...values: readonly number[]): void;
  of(key: string): readonly number[];
}

export function makeSamples(): Samples {
  const all = new Map<string, number[]>();
  return {
    add(key, ...values) {
      const present = all.get(key) ?? [];
      present.push(...values);
      all.set(key, present);
    },
    of: (key) => all.get(key) ?? [],
  };
}
