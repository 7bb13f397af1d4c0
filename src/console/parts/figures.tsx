// Single figures: a number with its name, a badge, a bar in a cell.

import type { ComponentChildren } from 'preact';

interface StatProps {
  readonly name: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly tone?: 'good' | 'bad';
}

export function Stat({ name, value, note, tone }: StatProps) {
  return (
    <div class="stat">
      <dt>{name}</dt>
      <dd class={tone}>{value}</dd>
      {note !== undefined && <dd class="note">{note}</dd>}
    </div>
  );
}

export function Stats({ children }: { readonly children: ComponentChildren }) {
  return <dl class="stats">{children}</dl>;
}

/** Stands in for a figure that is still loading. */
export function LoadingFigure() {
  return <span aria-busy="true">…</span>;
}

export type Tone = 'good' | 'bad' | 'warn' | 'plain';

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A bar in a table. It is hidden from screen readers, because the figure is beside it. */
export function Bar({ share, series = 0 }: { readonly share: number; readonly series?: number }) {
  const width = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0));
  return (
    <svg class="bar" aria-hidden="true" height="8" width="100%">
      <rect class="track" width="100%" height="8" rx="2" />
      <rect class={`fill s${series % 8}`} width={`${(width * 100).toFixed(2)}%`} height="8" rx="2" />
    </svg>
  );
}

/** How much of a limit is used, as a bar that changes colour from 80 % and from 95 %. */
export function Gauge({ used, label }: { readonly used: number; readonly label: string }) {
  const share = Math.max(0, Math.min(1, Number.isFinite(used) ? used : 0));
  const tone = share >= 0.95 ? 'bad' : share >= 0.8 ? 'warn' : 'good';
  return (
    <svg class="bar" role="img" aria-label={label} height="8" width="100%">
      <rect class="track" width="100%" height="8" rx="2" />
      <rect class={`fill ${tone}`} width={`${(share * 100).toFixed(2)}%`} height="8" rx="2" />
    </svg>
  );
}
