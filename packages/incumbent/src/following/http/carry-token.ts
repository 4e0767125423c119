import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { Term } from '../../core/term.ts';
import type { Dispatch, DispatchController, DispatchHandler, Interceptor } from './undici.ts';
import { checkHandler, withToken } from './undici.ts';

/** The options of `carryToken`. */
export interface CarryTokenOptions {
  /** How much belief must be left when a request is sent (`term.assertLeading`). Default 0. */
  readonly minRemaining?: Duration;
}

/**
 * Puts the election and the token of a term on every request, for resources that check them
 * (`requireToken`): `agent.compose(carryToken(term))`. Make one for each term. The composed
 * dispatchers share the agent's connections.
 *
 * A request is rejected with `NotLeadingError`, and not sent, when the term does not lead at
 * the moment it would be written to its connection. After that, only the resource can decide,
 * by the token.
 * @throws InvalidOptionError
 */
export function carryToken(term: Term, options: CarryTokenOptions = {}): Interceptor {
  checkNames('carryToken', options, { minRemaining: true });
  if (typeof term?.token !== 'bigint' || typeof term.assertLeading !== 'function') {
    throw new InvalidOptionError(`term must be a term, not ${describeValue(term)}`);
  }
  const minMs = parseDuration('minRemaining', options.minRemaining ?? 0);
  return (dispatch: Dispatch): Dispatch =>
    function carryTokenDispatch(request, handler) {
      checkHandler(handler);
      term.assertLeading(minMs);
      const headers = withToken(request.headers, term.election, term.token);
      return dispatch({ ...request, headers }, new LeadingOnly(handler, term, minMs));
    };
}

/** A request may wait for a connection longer than the term lasts. */
class LeadingOnly implements DispatchHandler {
  readonly #handler: DispatchHandler;
  readonly #term: Term;
  readonly #minMs: number;

  constructor(handler: DispatchHandler, term: Term, minMs: number) {
    this.#handler = handler;
    this.#term = term;
    this.#minMs = minMs;
  }

  onRequestStart(controller: DispatchController, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context);
    try {
      this.#term.assertLeading(this.#minMs);
    } catch (error) {
      controller.abort(error as Error);
    }
  }

  onRequestUpgrade(...args: Parameters<NonNullable<DispatchHandler['onRequestUpgrade']>>): void {
    this.#handler.onRequestUpgrade?.(...args);
  }

  onResponseStart(...args: Parameters<NonNullable<DispatchHandler['onResponseStart']>>): void {
    this.#handler.onResponseStart?.(...args);
  }

  onResponseData(...args: Parameters<NonNullable<DispatchHandler['onResponseData']>>): void {
    this.#handler.onResponseData?.(...args);
  }

  onResponseEnd(...args: Parameters<NonNullable<DispatchHandler['onResponseEnd']>>): void {
    this.#handler.onResponseEnd?.(...args);
  }

  onResponseError(...args: Parameters<NonNullable<DispatchHandler['onResponseError']>>): void {
    this.#handler.onResponseError?.(...args);
  }
}
