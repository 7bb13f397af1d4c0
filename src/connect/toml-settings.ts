// Sets keys at the top of a TOML file and one whole table of it, and leaves every other byte as it is, including
// comments.

import { isDeepStrictEqual } from 'node:util';
import { parse, type TomlTable } from 'smol-toml';

/** A string, or a comment, on a line that does not begin within a string. */
const STRING_OR_COMMENT = /"""|'''|"(?:[^"\\]|\\.)*"|'[^']*'|#/;

interface TableOf {
  /** With dots between nested tables. */
  readonly name: string;
  readonly values: Readonly<Record<string, string>>;
}

/**
 * Sets `values` as keys at the top, and replaces the table of that name or adds it. All values are strings. null: the
 * text is no TOML, or writes these settings in a form whose lines cannot be replaced.
 */
export function setInToml(text: string, values: Readonly<Record<string, string>>, table: TableOf): string | null {
  const before = parsed(text);
  const edited = editLines(text, values, table);
  const after = parsed(edited);
  if (before === null || after === null) return null;
  const path = table.name.split('.');
  const isSet =
    Object.entries(values).every(([key, value]) => after[key] === value) &&
    Object.entries(table.values).every(([key, value]) => tableAt(after, path)?.[key] === value);
  // Everything else must be unchanged.
  for (const root of [before, after]) {
    for (const key of Object.keys(values)) delete root[key];
    const above = tableAt(root, path.slice(0, -1));
    delete above?.[path.at(-1) ?? ''];
    if (path.length > 1 && above !== null && Object.keys(above).length === 0) delete root[path[0] ?? ''];
  }
  return isSet && isDeepStrictEqual(before, after) ? edited : null;
}

function parsed(text: string): TomlTable | null {
  try {
    return parse(text);
  } catch {
    return null;
  }
}

function tableAt(root: TomlTable, path: readonly string[]): TomlTable | null {
  return path.reduce<TomlTable | null>((at, name) => (at?.[name] ?? null) as TomlTable | null, root);
}

function editLines(text: string, values: Readonly<Record<string, string>>, table: TableOf): string {
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

/** The comment behind a value that is a string in quotes. */
function commentOf(line: string): string {
  return /=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*')(\s*#.*)$/.exec(line)?.[1] ?? '';
}

/** Comments directly above the next table stay, because they belong to that table. */
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

/** For each line, whether it begins inside a multi-line string. */
function insideStrings(lines: readonly string[]): boolean[] {
  let open: string | null = null;
  return lines.map((line) => {
    const isInside = open !== null;
    for (let rest = line; ; ) {
      if (open !== null) {
        const end = rest.indexOf(open);
        if (end === -1) return isInside;
        rest = rest.slice(end + open.length);
        open = null;
      }
      const found = STRING_OR_COMMENT.exec(rest);
      if (found === null || found[0] === '#') return isInside;
      rest = rest.slice(found.index + found[0].length);
      if (found[0] === '"""' || found[0] === "'''") open = found[0];
    }
  });
}
