// The checker of prose must be able to fail: each rule on a text that breaks it, and on one that
// only looks so.
import { describe, expect, it } from 'vitest';
import { blocksOf } from '../prose/blocks.mjs';
import { commentsOf } from '../prose/comments.mjs';
import { countsOf, faultsOf, sentencesOf, wordsOf } from '../prose/rules.mjs';

const words = (count) => `${Array.from({ length: count }, () => 'word').join(' ')}.`;
const faults = (text) => blocksOf(text).flatMap(faultsOf);

describe('sentences', () => {
  it('may have 35 words and not 36', () => {
    expect(faults(`A ${words(34)}`)).toEqual([]);
    expect(faults(`A ${words(35)}`)).toMatchObject([{ rule: 'sentence' }]);
  });

  it('end at a full stop, and neither after "e.g." nor before a small letter', () => {
    expect(sentencesOf('The leader stops. The store knows it.')).toHaveLength(2);
    expect(sentencesOf('Use a store, e.g. Redis, and lead.')).toHaveLength(1);
    expect(sentencesOf('The file index.ts exports it, v. much so.')).toHaveLength(1);
  });

  it('count a piece of code as one word and a dash as none', () => {
    expect(wordsOf(blocksOf('Call `await lead(work, options)` – then wait.')[0].text)).toBe(4);
  });

  it('go on over a wrapped line and not into the next item of a list', () => {
    expect(faults(`A ${words(20)}`.replace('.', `\n${words(20)}`))).toHaveLength(1);
    expect(faults(`- a ${words(20)}\n- b ${words(20)}`)).toEqual([]);
  });
});

describe('openings', () => {
  it('name the actor', () => {
    for (const opening of ['Who leads', 'Whoever asks', 'What is stored']) {
      expect(faults(`${opening} is told.`)).toMatchObject([{ rule: 'opening' }]);
    }
  });

  it('may ask a question, may be a heading, and may begin with a longer word', () => {
    expect(faults('Who leads?')).toEqual([]);
    expect(faults('## What is promised')).toEqual([]);
    expect(faults('| What it does |\n| --- |\n| It leads. |')).toEqual([]);
    expect(faults('Whole days pass.')).toEqual([]);
  });
});

describe('cells', () => {
  it('of more than 15 words are counted, and those of a heading are not', () => {
    const table = `| ${words(20)} |\n| --- |\n| ${words(16)} |\n| ${words(15)} |`;
    const counts = blocksOf(table).map(countsOf);
    expect(counts.map(({ longCells }) => longCells)).toEqual([0, 1, 0]);
  });
});

describe('the prose that is read', () => {
  it('is neither code nor front matter, and lines are counted from the top of the file', () => {
    const page = `---\ntitle: ${words(40)}\n---\n\n\`\`\`sh\n${words(40)}\n\`\`\`\n\nThe page.\n`;
    expect(blocksOf(page)).toMatchObject([{ text: 'The page.', line: 9 }]);
  });

  it('are comments of a source: consecutive lines are one, tags begin anew, directives are left out', () => {
    const source = [
      '// The first line',
      '// goes on.',
      'const a = 1; // beside code',
      '// biome-ignore lint/x/y: a reason',
      '/**',
      ' * Leads.',
      ' * @param {string} name of the {@link Election | election}',
      ' */',
    ].join('\n');
    expect(commentsOf(source, 'a.ts').map(({ text, line }) => [line, text.trim()])).toEqual([
      [1, 'The first line\ngoes on.'],
      [3, 'beside code'],
      [5, 'Leads.\n- name of the `Election`'],
    ]);
  });
});
