// Writes lines of comma-separated values (RFC 4180) that a spreadsheet does not evaluate as formulas.

export type CsvValue = string | number | bigint | boolean | null;

export function csvLine(values: readonly CsvValue[]): string {
  return `${values.map(csvField).join(',')}\r\n`;
}

/** Text that looks like a formula gets an apostrophe in front: clients choose the labels of their requests. */
function csvField(value: CsvValue): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) && !/^-?[0-9.]+$/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
