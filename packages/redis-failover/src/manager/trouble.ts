import type { Trouble, TroubleCode } from './events.ts';

/** Why a manager does nothing at the moment. It has changed nothing. */
export class TroubleError extends Error {
  override readonly name: string = 'TroubleError';
  readonly code: TroubleCode;

  constructor(code: TroubleCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export function troubleOf(error: unknown): Trouble {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' ? message : String(error);
  if (error instanceof TroubleError) return { code: error.code, message: text };
  if (code === 'NO_CANDIDATE' || code === 'LAYOUT') return { code, message: text };
  if (code === 'NODE_REFUSED') return { code, message: text };
  return { code: 'FAILED', message: text };
}
