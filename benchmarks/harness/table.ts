// Prints rows as the table of goals, in a form that can be pasted into benchmarks/README.md.

import type { Row } from '../measures/measure.ts';

const COLUMNS = ['nginx', 'bare', 'front', 'tollgate', 'portkey', 'portkey22', 'direct'];

export function renderTable(rows: readonly Row[]): string {
  const columns = COLUMNS.filter((name) => rows.some((row) => row.values[name] !== undefined));
  const header = ['', 'measure', 'unit', ...columns, 'figure', 'limit', ''];
  const lines = rows.map((row) => [
    row.id,
    row.note === undefined ? row.what : `${row.what} (${row.note})`,
    row.unit,
    ...columns.map((name) => formatNumber(row.values[name])),
    formatNumber(row.figure ?? undefined),
    row.goal === null ? '' : `${row.goalIs === 'at most' ? '≤' : '≥'} ${row.goal}`,
    verdict(row),
  ]);
  return [header, header.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function verdict({ figure, goal, goalIs }: Row): string {
  if (figure === null || goal === null) return '';
  const reached = goalIs === 'at most' ? figure <= goal : figure >= goal;
  return reached ? 'pass' : 'miss';
}

function formatNumber(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '';
  if (Math.abs(value) >= 1000) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
}
