/** S3 answers this when it does not do what it was asked. */
export class Refusal extends Error {
  readonly status: number;
  /** `NoSuchKey`, … */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** As S3 sends it. */
  body(key: string | undefined, requestId: string): string {
    const resource = key === undefined ? '' : `<Key>${escapeXml(key)}</Key>`;
    return (
      '<?xml version="1.0" encoding="UTF-8"?>\n' +
      `<Error><Code>${this.code}</Code><Message>${escapeXml(this.message)}</Message>${resource}` +
      `<RequestId>${requestId}</RequestId><HostId>stand-in</HostId></Error>`
    );
  }
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

export const noSuchKey = (): Refusal =>
  new Refusal(404, 'NoSuchKey', 'The specified key does not exist.');

export const noSuchBucket = (): Refusal =>
  new Refusal(404, 'NoSuchBucket', 'The specified bucket does not exist');

export const preconditionFailed = (): Refusal =>
  new Refusal(
    412,
    'PreconditionFailed',
    'At least one of the pre-conditions you specified did not hold',
  );

export const accessDenied = (): Refusal => new Refusal(403, 'AccessDenied', 'Access Denied');

export const notImplemented = (what: string): Refusal =>
  new Refusal(501, 'NotImplemented', `A header you provided implies functionality: ${what}`);
