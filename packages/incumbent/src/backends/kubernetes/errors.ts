import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { ApiResponse } from './client.ts';
import { asStatus } from './client.ts';

/** The verbs that an election needs on Leases, as RBAC names them. */
export type Verb = 'get' | 'create' | 'update' | 'watch';

/** Also the one that only a listing needs. */
type AnyVerb = Verb | 'list';

export type StoreError = StoreUnavailableError | StoreUnsuitableError;

/**
 * Makes errors of refusals. A call that has worked once may work again. An API server that has just
 * started knows neither tokens nor roles for a moment. And an operator may restore a right that was
 * taken away. So waiting is hopeless only where a call never was allowed.
 */
export class Refusals {
  readonly #server: string;
  readonly #namespace: string;
  readonly #allowed = new Set<AnyVerb>();

  constructor(server: string, namespace: string) {
    this.#server = server;
    this.#namespace = namespace;
  }

  allowed(verb: AnyVerb): void {
    this.#allowed.add(verb);
  }

  error(verb: AnyVerb, response: ApiResponse): StoreError {
    const { status, body } = response;
    const told = asStatus(body);
    const message = told?.message ?? response.text.trim().slice(0, 200);
    const what = `the API server ${this.#server} refused to ${verb} a Lease (${status}): ${message}`;
    if (told === undefined) return this.#notAnApiServer(verb, response);
    const isTerminating = told.details?.causes?.some(
      ({ reason }) => reason === 'NamespaceTerminating',
    );
    if (isTerminating === true) {
      return new StoreUnsuitableError(
        `${what}; the namespace "${this.#namespace}" is being deleted`,
      );
    }
    switch (status) {
      case 401:
        return this.#unlessAllowed(
          verb,
          `the API server ${this.#server} does not know us (401): ${message}; the token or ` +
            'certificate is missing, has expired or is for another cluster',
        );
      case 403:
        return this.#unlessAllowed(
          verb,
          `${what}; in the namespace "${this.#namespace}" this account needs the verb "${verb}" on ` +
            'leases of coordination.k8s.io: ' +
            (verb === 'list'
              ? 'docs/stores/kubernetes.md shows the Role of a reader that lists elections'
              : '`incumbent schema kubernetes` prints the Role'),
        );
      case 404:
        // An API server that has just started does not know all its groups yet.
        return this.#unlessAllowed(
          verb,
          told.details?.kind === 'namespaces'
            ? `the namespace "${this.#namespace}" is not there (404): ${message}; make it, or give ` +
                'another one'
            : `${what}; this server has no coordination.k8s.io/v1 (Kubernetes 1.14 has)`,
        );
      case 400:
      case 405:
        return this.#unlessAllowed(verb, what);
      case 413:
      case 415:
      case 422:
        return new StoreUnsuitableError(what);
      default: {
        const { retryAfter } = response;
        const wait = retryAfter === undefined ? '' : `; it asks to wait ${retryAfter} s`;
        return new StoreUnavailableError(what + wait);
      }
    }
  }

  /** A proxy, a login page, or something else altogether has answered. */
  #notAnApiServer(verb: AnyVerb, { status, text }: ApiResponse): StoreError {
    const page = text.trim().replace(/\s+/g, ' ').slice(0, 80);
    const what =
      `${this.#server} answered ${status} and no JSON of an API server` +
      `${page === '' ? '' : ` but "${page}"`}`;
    if (status >= 500 || status === 429) return new StoreUnavailableError(what);
    return this.#unlessAllowed(
      verb,
      `${what}: look whether the address is that of the API server and not of a page before it`,
    );
  }

  #unlessAllowed(verb: AnyVerb, message: string): StoreError {
    if (!this.#allowed.has(verb)) return new StoreUnsuitableError(message);
    return new StoreUnavailableError(`${message} (it was allowed before)`);
  }
}
