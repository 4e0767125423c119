import { expect, test } from 'vitest';
import { Progress } from '../src/terminal/progress.ts';

function onOutput(isTTY: boolean) {
  let written = '';
  let nowMs = 0;
  const output = { isTTY, write: (text: string | Uint8Array) => (written += String(text)) };
  return {
    progress: new Progress(output, () => nowMs),
    pass: (ms: number) => {
      nowMs += ms;
    },
    written: () => written,
  };
}

test('one line is written over ten times a second at most, and wiped', () => {
  const { progress, pass, written } = onOutput(true);
  progress.update('1 of 9');
  expect(written()).toBe('');
  pass(100);
  progress.update('2 of 9');
  pass(99);
  progress.update('3 of 9');
  pass(1);
  progress.update('4 of 9');
  progress.end();
  progress.end();
  expect(written()).toBe('\r2 of 9\r4 of 9\r\u001b[K');
});

test('what is over soon leaves no trace', () => {
  const { progress, written } = onOutput(true);
  progress.update('1 of 1');
  progress.end();
  expect(written()).toBe('');
});

test('nothing is written where there is no terminal', () => {
  const { progress, pass, written } = onOutput(false);
  pass(1000);
  progress.update('1 of 9');
  progress.end();
  expect(written()).toBe('');
});
