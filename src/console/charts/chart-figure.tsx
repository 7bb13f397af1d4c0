// The frame of every chart: title, legend, movement by arrow keys, a readout for screen readers, and the same data as a
// table, as CSV and as a command.

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { type Frame, plotFrame } from '../logic/chart-scale.ts';
import { csvOf } from '../logic/csv.ts';
import { CodeBlock } from '../parts/copy.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { saveFile } from '../state/save-file.ts';

export interface ChartProps<Row> {
  readonly title: string;
  readonly note?: ComponentChildren;
  /** The command that asks for the same data at a terminal. */
  readonly command: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** The number of points along the axis. */
  readonly points: number;
  /** The values at a point, in words. */
  readonly describe: (index: number) => string;
  readonly legend?: readonly string[];
  /** The mark of a series in the legend. */
  readonly mark?: 'bar' | 'line';
  readonly isLoading?: boolean;
  /** All values are empty or zero; the readout says so. */
  readonly isEmpty?: boolean;
  /** Opens the requests of a point. */
  readonly onPick?: (index: number) => void;
  readonly draw: (drawing: Drawing) => ComponentChildren;
}

export interface Drawing {
  /** The part of the picture in which the points are drawn, in pixels. */
  readonly frame: Frame;
  /** The point under the pointer or chosen by keys; null if there is none. */
  readonly selected: number | null;
}

const HEIGHT_PX = 220;

export function ChartFigure<Row>(props: ChartProps<Row>) {
  const { title, note, command, columns, rows, legend = [], mark = 'bar', isLoading = false } = props;
  const [asTable, setAsTable] = useState(false);
  const [asCommand, setAsCommand] = useState(false);
  const id = useId();
  const save = () =>
    saveFile(
      `${fileName(title)}.csv`,
      csvOf(
        columns.map(({ name }) => name),
        rows.map((row) => columns.map(({ raw }) => raw(row))),
      ),
    );
  return (
    <figure class={isLoading ? 'card chart dimmed' : 'card chart'} aria-busy={isLoading} aria-labelledby={id}>
      <header class="card-head">
        <figcaption>
          <h2 id={id}>{title}</h2>
          {note !== undefined && <p class="note">{note}</p>}
        </figcaption>
        <div class="chart-tools">
          <button type="button" class="quiet small" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            As a table
          </button>
          <button type="button" class="quiet small" onClick={save} aria-label={`CSV of ${title}`}>
            CSV
          </button>
          <button type="button" class="quiet small" aria-pressed={asCommand} onClick={() => setAsCommand(!asCommand)}>
            As a command
          </button>
        </div>
      </header>
      {asCommand && <CodeBlock code={command} label={`${title} as a command`} />}
      {asTable ? <Table caption={title} columns={columns} rows={rows} /> : <Plot {...props} />}
      {!asTable && legend.length > 1 && <Legend names={legend} mark={mark} />}
    </figure>
  );
}

function Plot<Row>({ title, points, describe, draw, onPick, isEmpty }: ChartProps<Row>) {
  const [element, width] = useWidth();
  const [selected, select] = useState<number | null>(null);
  const frame = plotFrame(width, HEIGHT_PX);
  const move = (event: KeyboardEvent) => {
    const next = indexAfter(event.key, selected, points);
    if (next === undefined) return;
    event.preventDefault();
    if (event.key === 'Enter' && selected !== null) onPick?.(selected);
    select(next);
  };
  const pointAt = (event: { offsetX: number }): number | null => {
    const index = Math.floor(((event.offsetX - frame.left) / frame.width) * points);
    return index >= 0 && index < points ? index : null;
  };
  const keys =
    onPick === undefined ? 'Arrow keys move through it.' : 'Arrow keys move through it, Enter opens the requests.';
  return (
    <div class="plot" ref={element}>
      {width > 0 && (
        // biome-ignore lint: a picture that is read by keys is an application for as long as it has the focus.
        <svg
          width={width}
          height={HEIGHT_PX}
          role="application"
          aria-roledescription="chart"
          aria-label={`${title}. ${keys}`}
          tabIndex={0}
          onKeyDown={move}
          onBlur={() => select(null)}
          onPointerMove={(event) => select(pointAt(event))}
          onPointerLeave={() => select(null)}
          onClick={(event) => {
            const index = pointAt(event);
            if (index !== null) onPick?.(index);
          }}
        >
          {draw({ frame, selected })}
        </svg>
      )}
      <p class="readout" aria-live="polite">
        {selected !== null && selected < points ? describe(selected) : isEmpty ? 'Nothing in this window.' : ' '}
      </p>
    </div>
  );
}

/** The point after a key press; null is no point, undefined a key that the chart does not use. */
function indexAfter(key: string, selected: number | null, points: number): number | null | undefined {
  if (key === 'ArrowRight') return Math.min(points - 1, (selected ?? -1) + 1);
  if (key === 'ArrowLeft') return Math.max(0, (selected ?? points) - 1);
  if (key === 'Home') return 0;
  if (key === 'End') return points - 1;
  if (key === 'Escape') return null;
  if (key === 'Enter') return selected;
  return undefined;
}

function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (element.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width] as const;
}

interface LegendProps {
  readonly names: readonly string[];
  readonly mark: 'bar' | 'line';
}

/** Series differ by colour and by pattern, because colour alone does not tell them apart for everybody. */
function Legend({ names, mark }: LegendProps) {
  return (
    <ul class="legend">
      {names.map((name, index) => (
        <li key={index}>
          {mark === 'line' ? (
            <svg width="24" height="12" aria-hidden="true">
              <path class={`line s${index % 8} d${index % 4}`} d="M0 6H24" />
            </svg>
          ) : (
            <svg width="14" height="12" aria-hidden="true">
              <rect class={`fill s${index % 8}`} width="14" height="12" rx="2" />
              <rect class="hatch" fill={`url(#hatch-${index % 8})`} width="14" height="12" rx="2" />
            </svg>
          )}
          {name}
        </li>
      ))}
    </ul>
  );
}

/** The fill patterns of all charts. The page contains them once. */
export function Hatches() {
  return (
    <svg width="0" height="0" class="unseen" aria-hidden="true">
      <defs>
        <pattern id="hatch-0" width="6" height="6" patternUnits="userSpaceOnUse" />
        {HATCHES.map((path, index) => (
          <pattern key={path} id={`hatch-${index + 1}`} width="6" height="6" patternUnits="userSpaceOnUse">
            <path d={path} class="hatch-line" />
          </pattern>
        ))}
      </defs>
    </svg>
  );
}

const HATCHES = [
  'M0 6L6 0M-1 1L1 -1M5 7L7 5',
  'M0 3H6',
  'M0 0L6 6M-1 5L1 7M5 -1L7 1',
  'M3 0V6',
  'M0 3H6M3 0V6',
  'M2 3h2M5 0h1M5 6h1M0 0h1M0 6h1',
  'M0 6L6 0M0 0L6 6',
];

function fileName(title: string): string {
  return `tollgate-${title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')}`;
}
