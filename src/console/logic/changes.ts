// Lists the differences between two JSON values as short texts, each with its path: `tiers.0.name: a → b`.

const TEXT_MAX = 60;

export function changesOf(before: unknown, after: unknown): string[] {
  return changesAt('', before ?? {}, after ?? {});
}

function changesAt(place: string, before: unknown, after: unknown): string[] {
  if (JSON.stringify(before ?? null) === JSON.stringify(after ?? null)) return [];
  const prefix = place === '' ? '' : `${place}: `;
  // Lists of the same length are compared item by item. Of other lists the items that were removed and added are named.
  if (Array.isArray(before) && Array.isArray(after) && before.length !== after.length)
    return [
      ...without(before, after).map((gone) => `${prefix}− ${gone}`),
      ...without(after, before).map((come) => `${prefix}+ ${come}`),
    ];
  if (isNested(before) && isNested(after) && Array.isArray(before) === Array.isArray(after)) {
    const [was, is] = [before as Members, after as Members];
    const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
    return names.flatMap((name) => changesAt(place === '' ? name : `${place}.${name}`, was[name], is[name]));
  }
  const name = place === '' ? 'value' : place;
  const [one, other] = [textOf(before), textOf(after)];
  return [one === '' ? `${name}: ${other}` : `${name}: ${one} → ${other === '' ? 'none' : other}`];
}

function without(items: readonly unknown[], others: readonly unknown[]): string[] {
  const known = new Set(others.map((other) => JSON.stringify(other)));
  return items.filter((item) => !known.has(JSON.stringify(item))).map(textOf);
}

type Members = Readonly<Record<string, unknown>>;

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
}
