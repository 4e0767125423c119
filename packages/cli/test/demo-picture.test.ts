import { describe, expect, it } from 'vitest';
import { leastColumns, picture, pictureRows } from '../src/demo/picture.ts';
import { Scene } from '../src/demo/scene.ts';
import type { Condition, Mark } from '../src/demo/snapshot.ts';
import type { Paint } from '../src/terminal/style.ts';
import { columnsOf } from '../src/terminal/text.ts';

const plain: Paint = (_tone, text) => text;

interface Told {
  readonly conditions?: readonly (readonly [number, Condition])[];
  readonly work?: readonly (readonly [number, number])[];
  readonly marks?: readonly (readonly [number, Mark])[];
}

/** A scene that stands still at `nowMs`, with lanes as told. */
function scene(nowMs: number, lanes: Readonly<Record<string, Told>>): Scene {
  const scene = new Scene(Object.keys(lanes));
  for (const lane of scene.lanes) {
    const { conditions = [], work = [], marks = [] } = lanes[lane.id]!;
    for (const [sinceMs, condition] of conditions) lane.conditions.push({ sinceMs, condition });
    for (const [fromMs, toMs] of work) lane.work.push({ fromMs, toMs, token: 1n });
    for (const [atMs, mark] of marks) lane.marks.push({ atMs, mark });
  }
  Object.defineProperty(scene, 'nowMs', { value: nowMs });
  return scene;
}

function laneOf(lines: readonly string[], id: string): string {
  const line = lines.find((each) => each.startsWith(`  ${id}  `));
  return line!.slice(`  ${id}  `.length);
}

describe('the picture of the demo', () => {
  it('shows work, waiting, each blow to a candidate, and where it was gone', () => {
    const lines = picture(
      scene(2_480, {
        ada: {
          conditions: [
            [0, 'waits'],
            [1_200, 'gone'],
          ],
          work: [[240, 1_200]],
          marks: [[1_200, 'killed']],
        },
        bob: {
          conditions: [
            [240, 'waits'],
            [1_920, 'frozen'],
          ],
          work: [[1_280, 2_160]],
          marks: [[1_920, 'frozen']],
        },
      }),
      80,
      plain,
    );
    expect(laneOf(lines, 'ada')).toBe('·████✗    ');
    expect(laneOf(lines, 'bob')).toBe(' ····███❄░');
  });

  it('never shows two candidates at work in one column', () => {
    // The second began 10 ms after the first had ended, in the same cell.
    const lines = picture(
      scene(2_000, { ada: { work: [[0, 1_000]] }, bob: { work: [[1_010, 2_000]] } }),
      80,
      plain,
    );
    const [ada, bob] = [laneOf(lines, 'ada'), laneOf(lines, 'bob')];
    for (let i = 0; i < bob.length; i += 1) expect(ada[i] === '█' && bob[i] === '█').toBe(false);
    expect(ada + bob).toContain('█');
  });

  it.each([leastColumns, 80, 200])('fits into %i columns, whatever the time', (columns) => {
    for (const nowMs of [0, 900, 20_000, 59_000]) {
      const told = scene(nowMs, {
        ada: { conditions: [[0, 'waits']], work: [[500, 30_000]] },
        bob: { conditions: [[0, 'waits']] },
      });
      for (let i = 0; i < 9; i += 1) told.note({ what: 'x'.repeat(30), outcome: 'y'.repeat(90) });
      const lines = picture(told, columns, plain);
      expect(lines.length).toBeLessThanOrEqual(pictureRows);
      for (const line of lines) expect(columnsOf(line)).toBeLessThanOrEqual(Math.min(columns, 80));
    }
  });
});
