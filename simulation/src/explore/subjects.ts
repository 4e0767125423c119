import { session } from './session/subject.ts';
import type { Subject } from './subject.ts';
import { term } from './term/subject.ts';

/** All machines that are explored, in the order in which the command walks them. */
export const subjects: readonly Subject[] = [term, session];

export function subjectNamed(name: string): Subject {
  const found = subjects.find((subject) => subject.name === name);
  if (found !== undefined) return found;
  const names = subjects.map((each) => each.name).join(', ');
  throw new Error(`--only "${name}": there is no such machine. There are: ${names}`);
}
