/** Paints the grid of shards: a canvas for some rows of it, so that it scrolls as a picture does. */
import type { ShownGrid } from '../../src/dashboard/shown.ts';
import { termOf } from './grid.ts';
import { colourOf } from './model.ts';

/** Where the cells are, in CSS pixels. */
export interface Layout {
  readonly shards: number;
  readonly columns: number;
  readonly rows: number;
  readonly cellPx: number;
  /** At the left: the number of the first shard of each row. */
  readonly gutterPx: number;
}

const gapPx = 2;
const tilePx = 512;
/** Drawn before they are seen. */
const aheadPx = 600;
const gutterPx = 52;
/** From this size on, a cell has its number in it. */
const numberedPx = 30;

export function layoutOf(shards: number, widthPx: number): Layout {
  const cellPx = shards <= 300 ? 34 : shards <= 2_500 ? 20 : 14;
  const fit = Math.max(1, Math.floor((widthPx - gutterPx) / cellPx));
  // Rows that begin with a round number.
  const round = fit >= 20 ? 10 : fit >= 10 ? 5 : 1;
  const columns = Math.min(shards, fit - (fit % round));
  return { shards, columns, rows: Math.ceil(shards / columns), cellPx, gutterPx };
}

interface Palette {
  readonly owners: readonly string[];
  readonly bad: string;
  readonly ground: string;
  readonly text: string;
  readonly quiet: string;
}

interface Tile {
  readonly canvas: HTMLCanvasElement;
  readonly firstRow: number;
  readonly rows: number;
  isSeen: boolean;
  isOld: boolean;
}

export class GridPainter {
  readonly #box: HTMLElement;
  readonly #observer: IntersectionObserver;
  readonly #scheme = matchMedia('(prefers-color-scheme: dark)');
  readonly #repaint = () => {
    this.#palette = undefined;
    this.#paint();
  };
  #layout: Layout | undefined;
  #tiles: readonly Tile[] = [];
  #palette: Palette | undefined;
  #grid: ShownGrid | undefined;
  #slot: number | undefined;

  /** @param box its children are the canvases */
  constructor(box: HTMLElement, scroller: HTMLElement) {
    this.#box = box;
    this.#observer = new IntersectionObserver((entries) => this.#seen(entries), {
      root: scroller,
      rootMargin: `${aheadPx}px`,
    });
    this.#scheme.addEventListener('change', this.#repaint);
  }

  /** @param slot that of a member: the shards of others are pale */
  show(grid: ShownGrid | undefined, layout: Layout, slot: number | undefined): void {
    this.#grid = grid;
    this.#slot = slot;
    if (JSON.stringify(layout) !== JSON.stringify(this.#layout)) this.#lay(layout);
    this.#paint();
  }

  close(): void {
    this.#observer.disconnect();
    this.#scheme.removeEventListener('change', this.#repaint);
  }

  #lay(layout: Layout): void {
    this.#layout = layout;
    this.#observer.disconnect();
    const rowsATile = Math.max(1, Math.floor(tilePx / layout.cellPx));
    this.#tiles = Array.from({ length: Math.ceil(layout.rows / rowsATile) }, (_, at) => {
      const firstRow = at * rowsATile;
      const rows = Math.min(rowsATile, layout.rows - firstRow);
      const canvas = document.createElement('canvas');
      const [width, height] = [
        layout.gutterPx + layout.columns * layout.cellPx,
        rows * layout.cellPx,
      ];
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      return { canvas, firstRow, rows, isSeen: false, isOld: true };
    });
    this.#box.replaceChildren(...this.#tiles.map(({ canvas }) => canvas));
    for (const { canvas } of this.#tiles) this.#observer.observe(canvas);
  }

  #seen(entries: readonly IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const tile = this.#tiles.find(({ canvas }) => canvas === target);
      if (tile === undefined) continue;
      tile.isSeen = isIntersecting;
      if (isIntersecting && tile.isOld) this.#paintTile(tile);
    }
  }

  #paint(): void {
    for (const tile of this.#tiles) {
      tile.isOld = true;
      if (tile.isSeen) this.#paintTile(tile);
    }
  }

  #paintTile(tile: Tile): void {
    const { canvas, firstRow, rows } = tile;
    const layout = this.#layout;
    const context = canvas.getContext('2d');
    if (layout === undefined || context === null) return;
    tile.isOld = false;
    this.#palette ??= readPalette(this.#box);
    const { columns, cellPx, shards } = layout;
    const scale = devicePixelRatio;
    canvas.width = Math.round((layout.gutterPx + columns * cellPx) * scale);
    canvas.height = Math.round(rows * cellPx * scale);
    context.scale(scale, scale);
    context.textBaseline = 'middle';
    const moving = new Set(this.#grid?.moving);
    for (let row = 0; row < rows; row += 1) {
      const first = (firstRow + row) * columns;
      context.globalAlpha = 1;
      context.fillStyle = this.#palette.quiet;
      context.font = '11px system-ui, sans-serif';
      context.textAlign = 'right';
      context.fillText(String(first), layout.gutterPx - 8, (row + 0.5) * cellPx);
      for (let column = 0; column < columns && first + column < shards; column += 1) {
        const x = layout.gutterPx + column * cellPx;
        this.#paintCell(context, first + column, { x, y: row * cellPx, cellPx }, moving);
      }
    }
  }

  #paintCell(
    context: CanvasRenderingContext2D,
    shard: number,
    { x, y, cellPx }: { readonly x: number; readonly y: number; readonly cellPx: number },
    moving: ReadonlySet<number>,
  ): void {
    const palette = this.#palette as Palette;
    const term = termOf(this.#grid, shard);
    const sizePx = cellPx - gapPx;
    context.globalAlpha = this.#slot === undefined || term?.slot === this.#slot ? 1 : 0.22;
    if (term === undefined) {
      // Until the grid was read, there is nothing to warn of.
      if (this.#grid === undefined) return;
      context.globalAlpha = 1;
      hatch(context, x, y, sizePx, palette.bad);
    } else {
      context.fillStyle = palette.owners[colourOf(term.id)] ?? palette.text;
      context.fillRect(x, y, sizePx, sizePx);
      if (moving.has(shard)) {
        // A frame without its inside: the shard is about to leave.
        const edgePx = Math.max(2, Math.min(4, Math.floor(sizePx / 5)));
        context.fillStyle = palette.ground;
        context.fillRect(x + edgePx, y + edgePx, sizePx - 2 * edgePx, sizePx - 2 * edgePx);
      }
    }
    if (cellPx < numberedPx) return;
    const isFilled = term !== undefined && !moving.has(shard);
    context.fillStyle = isFilled ? palette.ground : palette.text;
    context.font = '12px system-ui, sans-serif';
    context.textAlign = 'center';
    context.fillText(String(shard), x + sizePx / 2, y + sizePx / 2 + 1);
  }
}

function hatch(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  sizePx: number,
  colour: string,
): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(x + 0.75, y + 0.75, sizePx - 1.5, sizePx - 1.5);
  context.beginPath();
  context.moveTo(x + 1, y + sizePx - 1);
  context.lineTo(x + sizePx - 1, y + 1);
  if (sizePx > 16) {
    context.moveTo(x + 1, y + sizePx / 2);
    context.lineTo(x + sizePx / 2, y + 1);
    context.moveTo(x + sizePx / 2, y + sizePx - 1);
    context.lineTo(x + sizePx - 1, y + sizePx / 2);
  }
  context.stroke();
}

/** The colours of the style sheet, as the present scheme has them. */
function readPalette(box: HTMLElement): Palette {
  const probe = document.createElement('span');
  box.append(probe);
  const read = (name: string) => {
    probe.className = name;
    const { fill, color } = getComputedStyle(probe);
    return name.startsWith('colour-') ? fill : color;
  };
  const palette = {
    owners: Array.from({ length: 8 }, (_, i) => read(`colour-${i}`)),
    bad: read('tone bad'),
    ground: getComputedStyle(document.documentElement).backgroundColor,
    text: getComputedStyle(document.documentElement).color,
    quiet: read('quiet'),
  };
  probe.remove();
  return palette;
}
