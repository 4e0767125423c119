/** The JSON API answers this instead of an object. */
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

  /** As the XML API says it. */
  toXml(): string {
    const [code, message] =
      xmlErrors[this.message === bucketIsMissing ? 'bucket' : this.status] ?? otherXmlError;
    const details = this.message.replace(/[<>&]/g, (each) => `&#${each.charCodeAt(0)};`);
    return (
      "<?xml version='1.0' encoding='UTF-8'?>" +
      `<Error><Code>${code}</Code><Message>${message}</Message><Details>${details}</Details></Error>`
    );
  }
}

const bucketIsMissing = 'The specified bucket does not exist.';
const xmlErrors: Readonly<Record<string, readonly [code: string, message: string]>> = {
  bucket: ['NoSuchBucket', bucketIsMissing],
  403: ['AccessDenied', 'Access denied.'],
  404: ['NoSuchKey', 'The specified key does not exist.'],
  412: ['PreconditionFailed', 'At least one of the pre-conditions you specified did not hold.'],
  416: ['InvalidRange', 'The requested range cannot be satisfied.'],
};
const otherXmlError = [
  'InternalError',
  'We encountered an internal error. Please try again.',
] as const;

export function noSuchBucket(): Refusal {
  return new Refusal(404, 'notFound', bucketIsMissing);
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
