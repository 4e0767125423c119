/** One cell for each shard. A screen reader hears the cell that the arrow keys are on. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ShownGrid } from '../../src/dashboard/shown.ts';
import { wordsOfShard } from './grid.ts';
import type { Layout } from './grid-painter.ts';
import { GridPainter, layoutOf } from './grid-painter.ts';

export interface ShardGridProps {
  readonly name: string;
  readonly shards: number;
  readonly grid: ShownGrid | undefined;
  /** The member whose shards stand out. */
  readonly slot: number | undefined;
  /** The shard that is looked at. */
  readonly shard: number;
  readonly onShard: (shard: number) => void;
}

export function ShardGrid({ name, shards, grid, slot, shard, onShard }: ShardGridProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const tiles = useRef<HTMLDivElement>(null);
  const painter = useRef<GridPainter>();
  const [widthPx, setWidthPx] = useState(0);

  useLayoutEffect(() => {
    const [box, outer] = [tiles.current, scroller.current];
    if (box === null || outer === null) return;
    painter.current = new GridPainter(box, outer);
    const measure = () => setWidthPx(outer.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(outer);
    return () => {
      observer.disconnect();
      painter.current?.close();
    };
  }, []);

  const layout = widthPx === 0 ? undefined : layoutOf(shards, widthPx);
  useEffect(() => {
    if (layout !== undefined) painter.current?.show(grid, layout, slot);
  }, [grid, slot, widthPx, shards]);

  const at = layout && placeOf(layout, shard);
  const isPointed = useRef(false);
  useEffect(() => {
    // It is in view where somebody points at it.
    const isInView = isPointed.current;
    isPointed.current = false;
    if (isInView || layout === undefined || scroller.current === null) return;
    keepInView(scroller.current, at?.y ?? 0, layout.cellPx);
  }, [shard]);

  const onPointer = (event: PointerEvent & { readonly currentTarget: HTMLElement }) => {
    const to = layout && shardAt(event, layout);
    if (to === undefined || to === shard) return;
    isPointed.current = true;
    onShard(to);
  };
  return (
    <div class="grid-scroll" ref={scroller}>
      <div
        class="grid"
        role="listbox"
        aria-label={`The shards of ${name}`}
        aria-activedescendant={`shard-${shard}`}
        tabIndex={0}
        onKeyDown={(event) => {
          const to = layout && target(event.key, shard, layout);
          if (to === undefined) return;
          event.preventDefault();
          onShard(Math.max(0, Math.min(shards - 1, to)));
        }}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
      >
        <div class="tiles" aria-hidden="true" ref={tiles} />
        <div
          id={`shard-${shard}`}
          role="option"
          class="cursor"
          aria-selected="true"
          aria-posinset={shard + 1}
          aria-setsize={shards}
          aria-label={wordsOfShard(grid, shard)}
          style={
            layout &&
            at && {
              transform: `translate(${at.x}px, ${at.y}px)`,
              inlineSize: `${layout.cellPx - 2}px`,
              blockSize: `${layout.cellPx - 2}px`,
            }
          }
        />
      </div>
    </div>
  );
}

function placeOf({ columns, cellPx, gutterPx }: Layout, shard: number) {
  return {
    x: gutterPx + (shard % columns) * cellPx,
    y: Math.floor(shard / columns) * cellPx,
  };
}

/** The shard that a key leads to; undefined: the key is none of ours. */
function target(key: string, shard: number, { columns, shards }: Layout): number | undefined {
  switch (key) {
    case 'ArrowRight':
      return shard + 1;
    case 'ArrowLeft':
      return shard - 1;
    case 'ArrowDown':
      return shard + columns < shards ? shard + columns : shard;
    case 'ArrowUp':
      return shard >= columns ? shard - columns : shard;
    case 'PageDown':
      return shard + 10 * columns;
    case 'PageUp':
      return shard - 10 * columns;
    case 'Home':
      return 0;
    case 'End':
      return shards - 1;
    default:
      return undefined;
  }
}

/** @returns undefined beside the cells */
function shardAt(
  { clientX, clientY, currentTarget }: PointerEvent & { readonly currentTarget: HTMLElement },
  { columns, cellPx, gutterPx, shards }: Layout,
): number | undefined {
  const { left, top } = currentTarget.getBoundingClientRect();
  const column = Math.floor((clientX - left - gutterPx) / cellPx);
  const row = Math.floor((clientY - top) / cellPx);
  const shard = row * columns + column;
  const isCell = column >= 0 && column < columns && row >= 0 && shard < shards;
  return isCell ? shard : undefined;
}

function keepInView(scroller: HTMLElement, y: number, cellPx: number): void {
  const { scrollTop, clientHeight } = scroller;
  if (y < scrollTop) scroller.scrollTop = y - cellPx;
  else if (y + 2 * cellPx > scrollTop + clientHeight) {
    scroller.scrollTop = y + 2 * cellPx - clientHeight;
  }
}
