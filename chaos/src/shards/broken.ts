/** Processes that are broken on purpose: a run that does not find them proves nothing. */

export type Broken = 'trusts-signal' | 'works-on' | 'idles';

export const brokenWays: Readonly<Record<Broken, { readonly about: string }>> = {
  'trusts-signal': { about: 'they act until the signal has told otherwise' },
  'works-on': { about: 'their work goes on after it has said that it had settled' },
  idles: { about: 'one process returns from the work for each shard at once' },
};
