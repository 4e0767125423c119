export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** A promise to be settled from outside. It may reject before any code waits for it. */
export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** `promise`, but rejects after `limitMs` or when `signal` is aborted. */
export async function bounded<T>(
  promise: Promise<T>,
  limitMs: number,
  what: string,
  signal?: AbortSignal,
): Promise<T> {
  signal?.throwIfAborted();
  const other = deferred<never>();
  const abort = (): void => other.reject(signal?.reason);
  const timer = setTimeout(
    () => other.reject(new Error(`waited ${limitMs} ms in vain for ${what}`)),
    limitMs,
  );
  signal?.addEventListener('abort', abort);
  try {
    return await Promise.race([promise, other.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
