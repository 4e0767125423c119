/** How the value of one parameter of a store's URL is read. A value that is shown is no secret. */
import { parseDuration } from 'incumbent';

/** Refuses with the fault, behind "the … URL of --store "; never returns. */
export type Refuse = (why: string) => never;

export function word(text: string): string {
  return text;
}

export function choice<Choice extends string>(
  ...choices: readonly Choice[]
): (text: string, refuse: Refuse) => Choice {
  return (text, refuse) => {
    const chosen = choices.find((each) => each === text);
    return chosen ?? refuse(`is ${choices.join(', ')}, not ${quote(text)}`);
  };
}

export function flag(text: string, refuse: Refuse): boolean {
  return text === 'true' || (text !== 'false' && refuse(`is true or false, not ${quote(text)}`));
}

/** Left as text: the library reads it. */
export function duration(text: string, refuse: Refuse): string {
  if (/^(?:\d+(?:\.\d+)?|\.\d+)(?:ms|s|m|h)$/.test(text)) return text;
  return refuse(`is a duration such as 500ms, 10s or 2m, not ${quote(text)}`);
}

/** At least 1 ms. */
export function timeout(text: string, refuse: Refuse): number {
  const ms = Math.round(parseDuration('timeout', duration(text, refuse)));
  return ms >= 1 ? ms : refuse(`is a duration of 1ms or more, not ${quote(text)}`);
}

export function wholeNumber(least: number, most: number): (text: string, refuse: Refuse) => number {
  return (text, refuse) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    return refuse(`is a whole number from ${least} to ${most}, not ${quote(text)}`);
  };
}

export function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
