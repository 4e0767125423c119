/** What the JSON API says instead of an object. */
export class Refusal extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }

  toJSON(): object {
    const { status: code, reason, message } = this;
    return { error: { code, message, errors: [{ message, domain: 'global', reason }] } };
  }
}

export function noSuchBucket(): Refusal {
  return new Refusal(404, 'notFound', 'The specified bucket does not exist.');
}

export function noSuchObject(bucket: string, name: string): Refusal {
  return new Refusal(404, 'notFound', `No such object: ${bucket}/${name}`);
}

export function conditionNotMet(): Refusal {
  const why = 'At least one of the pre-conditions you specified did not hold.';
  return new Refusal(412, 'conditionNotMet', why);
}

export function forbidden(permission: string): Refusal {
  return new Refusal(
    403,
    'forbidden',
    `stand-in@example.com does not have ${permission} access to the Google Cloud Storage object. ` +
      `Permission '${permission}' denied on resource (or it may not exist).`,
  );
}

export function invalid(message: string): Refusal {
  return new Refusal(400, 'invalid', message);
}
