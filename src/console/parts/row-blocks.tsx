// The rows of a long table in blocks. Only blocks near the visible part of the page are rendered; every other block is
// an empty row of the same height.

import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** A table of up to this many rows is rendered whole. A page of 50 requests is. */
export const WHOLE_ROWS_MAX = 60;
const BLOCK_ROWS = 40;
/** The height of a row until the first block has been measured. */
const USUAL_ROW_PX = 40;
/** Blocks are rendered half a window's height ahead, above and below. */
const AHEAD = '50% 0px';

interface RowBlocksProps {
  readonly count: number;
  /** The number of cells in a row. */
  readonly cells: number;
  readonly rowAt: (index: number) => VNode;
  /** Cells as wide as the widest of each column. They keep the widths of columns whichever rows are rendered. */
  readonly widest: ComponentChildren;
}

export function RowBlocks({ count, cells, rowAt, widest }: RowBlocksProps) {
  const watch = useNearness();
  const [rowPx, setRowPx] = useState(USUAL_ROW_PX);
  const blocks = Array.from({ length: Math.ceil(count / BLOCK_ROWS) }, (_, block) => block * BLOCK_ROWS);
  return (
    <>
      {blocks.map((from) => (
        <Block
          key={from}
          from={from}
          to={Math.min(count, from + BLOCK_ROWS)}
          cells={cells}
          rowAt={rowAt}
          watch={watch}
          usualRowPx={rowPx}
          {...(from === 0 ? { onMeasured: setRowPx } : {})}
        />
      ))}
      <tfoot class="widest">
        <tr>{widest}</tr>
      </tfoot>
    </>
  );
}

type Watch = (element: Element, tell: (entry: IntersectionObserverEntry) => void) => () => void;

/** One observer tells all blocks of a table whether they are near the visible part. */
function useNearness(): Watch {
  const [{ observer, watch }] = useState(() => {
    const listeners = new Map<Element, (entry: IntersectionObserverEntry) => void>();
    const made = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) listeners.get(entry.target)?.(entry);
      },
      { rootMargin: AHEAD },
    );
    const add: Watch = (element, tell) => {
      listeners.set(element, tell);
      made.observe(element);
      return () => {
        made.unobserve(element);
        listeners.delete(element);
      };
    };
    return { observer: made, watch: add };
  });
  useEffect(() => () => observer.disconnect(), []);
  return watch;
}

interface BlockProps extends Omit<RowBlocksProps, 'count' | 'widest'> {
  readonly from: number;
  readonly to: number;
  readonly watch: Watch;
  readonly usualRowPx: number;
  readonly onMeasured?: (rowPx: number) => void;
}

/** A block that has the focus stays rendered wherever the page is scrolled to, so that the focus is not lost. */
function Block({ from, to, cells, rowAt, watch, usualRowPx, onMeasured }: BlockProps) {
  const element = useRef<HTMLTableSectionElement>(null);
  const rowPx = useRef<number | null>(null);
  const [isNear, setNear] = useState(from === 0);
  const [hasFocus, setFocus] = useState(false);
  const isDrawn = isNear || hasFocus;
  const drawn = useRef(isDrawn);
  drawn.current = isDrawn;
  useLayoutEffect(() => {
    const height = element.current?.getBoundingClientRect().height ?? 0;
    if (height > 0) onMeasured?.(height / (to - from));
  }, []);
  useEffect(() => {
    if (element.current === null) return;
    return watch(element.current, ({ isIntersecting, boundingClientRect: { height } }) => {
      if (drawn.current && height > 0) rowPx.current = height / (to - from);
      setNear(isIntersecting);
    });
  }, [to]);
  return (
    <tbody
      ref={element}
      onFocusIn={() => setFocus(true)}
      onFocusOut={({ currentTarget, relatedTarget }) => setFocus(currentTarget.contains(relatedTarget as Node | null))}
    >
      {isDrawn ? (
        Array.from({ length: to - from }, (_, offset) => rowAt(from + offset))
      ) : (
        <tr aria-hidden="true" class="not-drawn">
          <td colSpan={cells} style={{ height: `${((rowPx.current ?? usualRowPx) * (to - from)).toFixed(1)}px` }} />
        </tr>
      )}
    </tbody>
  );
}
