// Sets keys at the top of a TOML file and one whole table of it, and leaves every other byte as it is, comments too.

/** A line within a string of several lines looks like anything. */
const QUOTES = /'''|"""/g;

/** `values`: keys at the top. The table of the name is replaced where there is one. Values are strings. */
export function setInToml(
  text: string,
  values: Readonly<Record<string, string>>,
  table: { readonly name: string; readonly values: Readonly<Record<string, string>> },
): string {
  const end = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = withoutTable(text === '' ? [] : text.split(/\r?\n/), table.name);
  for (const [key, value] of Object.entries(values)) setAtTop(lines, key, `${key} = ${JSON.stringify(value)}`);
  while (lines.at(-1)?.trim() === '') lines.pop();
  if (lines.length > 0) lines.push('');
  const entries = Object.entries(table.values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return [...lines, `[${table.name}]`, ...entries, ''].join(end);
}

function setAtTop(lines: string[], key: string, line: string): void {
  const inside = insideStrings(lines);
  const firstTable = lines.findIndex((text, at) => !inside[at] && /^\s*\[/.test(text));
  const top = firstTable === -1 ? lines.length : firstTable;
  const found = lines.findIndex((text, at) => at < top && !inside[at] && new RegExp(`^\\s*"?${key}"?\\s*=`).test(text));
  if (found === -1) lines.unshift(line);
  else lines[found] = `${line}${commentOf(lines[found] ?? '')}`;
}

/** What stands behind a value that is a string in quotes. */
function commentOf(line: string): string {
  return /=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*')(\s*#.*)$/.exec(line)?.[1] ?? '';
}

/** Comments right above the next table stay: they are that table's. */
function withoutTable(lines: readonly string[], name: string): string[] {
  const inside = insideStrings(lines);
  const headers = lines.flatMap((line, at) => (!inside[at] && /^\s*\[/.test(line) ? [at] : []));
  const start = headers.find((at) => nameOf(lines[at] ?? '') === name);
  if (start === undefined) return [...lines];
  let end = headers.find((at) => at > start) ?? lines.length;
  while (end < lines.length && end > start + 1 && /^\s*(#|$)/.test(lines[end - 1] ?? '')) end -= 1;
  return [...lines.slice(0, start), ...lines.slice(end)];
}

function nameOf(header: string): string {
  return (/^\s*\[([^\]]*)\]/.exec(header)?.[1] ?? '').replaceAll(/["'\s]/g, '');
}

/** For each line, whether it begins inside of a string of several lines. */
function insideStrings(lines: readonly string[]): boolean[] {
  let open: string | null = null;
  return lines.map((line) => {
    const before = open !== null;
    for (const [quotes] of line.matchAll(QUOTES)) {
      if (open === null) open = quotes;
      else if (open === quotes) open = null;
    }
    return before;
  });
}
