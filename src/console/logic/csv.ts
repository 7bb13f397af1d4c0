// Writes a table as CSV (RFC 4180). A cell that a spreadsheet would run as a formula gets the prefix ', as it does in
// the gateway's own exports.

import type { Count } from './format.ts';

export function csvOf(columns: readonly string[], rows: readonly (readonly (string | Count | null)[])[]): string {
  return [columns, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function cell(value: string | Count | null): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) && !/^-?[\d.]+$/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
