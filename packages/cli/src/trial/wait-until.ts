const lookEveryMs = 10;

/**
 * Resolves with what `look` finds, or with undefined after `limitMs`.
 * @throws `signal.reason`
 */
export async function waitUntil<T>(
  look: () => T | undefined | false,
  limitMs: number,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const startMs = performance.now();
  for (;;) {
    signal?.throwIfAborted();
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() - startMs > limitMs) return undefined;
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
}
