/** An API server answers this instead of an object. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: object | undefined;

  constructor(code: number, reason: string, message: string, details?: object) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  toJSON(): object {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

const resource = 'leases.coordination.k8s.io';

export function leaseDetails(name: string): object {
  return { name, group: 'coordination.k8s.io', kind: 'leases' };
}

export function notFound(name: string): StatusError {
  return new StatusError(404, 'NotFound', `${resource} "${name}" not found`, leaseDetails(name));
}

export function namespaceNotFound(name: string): StatusError {
  return new StatusError(404, 'NotFound', `namespaces "${name}" not found`, {
    name,
    kind: 'namespaces',
  });
}

export function alreadyExists(name: string): StatusError {
  return new StatusError(
    409,
    'AlreadyExists',
    `${resource} "${name}" already exists`,
    leaseDetails(name),
  );
}

export function conflict(name: string, why?: string): StatusError {
  const because =
    why ??
    'the object has been modified; please apply your changes to the latest version and try again';
  return new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${resource} "${name}": ${because}`,
    leaseDetails(name),
  );
}

export function invalid(name: string, field: string, why: string): StatusError {
  return new StatusError(
    422,
    'Invalid',
    `Lease.coordination.k8s.io "${name}" is invalid: ${field}: ${why}`,
    { ...leaseDetails(name), causes: [{ reason: 'FieldValueInvalid', message: why, field }] },
  );
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}

export function expired(): StatusError {
  return new StatusError(410, 'Expired', 'too old resource version');
}
