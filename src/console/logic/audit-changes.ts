// What an audit entry changed, member by member, as short texts.

const TEXT_MAX = 60;

export function changesOf(before: unknown, after: unknown): string[] {
  const [was, is] = [membersOf(before), membersOf(after)];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return names.flatMap((name) => {
    const [one, other] = [textOf(was[name]), textOf(is[name])];
    if (one === other) return [];
    if (one === '') return [`${name}: ${other}`];
    return [`${name}: ${one} → ${other === '' ? 'none' : other}`];
  });
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  if (value === null || value === undefined) return {};
  return typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : { value };
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
}
