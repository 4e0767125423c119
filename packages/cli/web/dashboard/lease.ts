import { useEffect, useState } from 'preact/hooks';
import type { ShownElection, ShownLease } from '../../src/dashboard/shown.ts';

const everyMs = 1_000;

/** The rest of a leader's lease, asked once a second while somebody looks; undefined: that is not known. */
export function useLease({ store, election, state }: ShownElection): number | undefined {
  const [leftMs, setLeftMs] = useState<number>();
  const isLed = state === 'led';
  useEffect(() => {
    setLeftMs(undefined);
    if (!isLed) return;
    const stop = new AbortController();
    const ask = async () => {
      if (document.hidden) return;
      try {
        const query = new URLSearchParams({ store: String(store), election });
        const response = await fetch(`/lease?${query}`, { signal: stop.signal });
        const lease = (await response.json()) as ShownLease;
        if (response.ok) setLeftMs(lease.leftMs ?? undefined);
      } catch {
        // The page says by itself that the connection is lost.
        if (!stop.signal.aborted) setLeftMs(undefined);
      }
    };
    void ask();
    const timer = setInterval(() => void ask(), everyMs);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [store, election, isLed]);
  return leftMs;
}
