// Finds and prints the differences between two states of everything that a configuration file can set.

/** The kinds of entries that gateways hold in memory as the catalog. */
export type CatalogKind = 'provider' | 'model' | 'routing_policy';
export type ConfiguredKind = CatalogKind | 'guardrail_policy' | 'organization';

/** One provider, model, policy or organization in the terms of the configuration file, without any secret. */
export interface ConfiguredState {
  readonly kind: ConfiguredKind;
  readonly id: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A stored provider, model or policy. */
export interface CatalogState extends ConfiguredState {
  readonly kind: CatalogKind;
  /** It grows with every change. */
  readonly version: number;
}

/** `before` null: it is new. `after` null: it is removed. */
export interface Difference {
  readonly kind: ConfiguredKind;
  readonly id: string;
  readonly before: ConfiguredState['fields'] | null;
  readonly after: ConfiguredState['fields'] | null;
}

/** Fields must have the same order in both states, as Postgres gives those of a jsonb value. */
export function findDifferences(
  before: readonly ConfiguredState[],
  after: readonly ConfiguredState[],
): readonly Difference[] {
  const earlier = new Map(before.map((state) => [nameOf(state), state]));
  const later = new Map(after.map((state) => [nameOf(state), state]));
  const removed = before.filter((state) => !later.has(nameOf(state)));
  const found = [...after, ...removed].map(
    ({ kind, id }): Difference => ({
      kind,
      id,
      before: earlier.get(nameOf({ kind, id }))?.fields ?? null,
      after: later.get(nameOf({ kind, id }))?.fields ?? null,
    }),
  );
  return found.filter((difference) => JSON.stringify(difference.before) !== JSON.stringify(difference.after));
}

function nameOf({ kind, id }: Pick<ConfiguredState, 'kind' | 'id'>): string {
  return `${kind} ${id}`;
}

/** One line that names the entry, and one line for each field that differs. */
export function describeDifference({ kind, id, before, after }: Difference): readonly string[] {
  const sign = before === null ? '+' : after === null ? '-' : '~';
  const head = `${sign} ${kind.replace('_', ' ')} ${id}`;
  if (before === null || after === null) return [head];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return [head, ...names.flatMap((name) => describeField(name, before[name], after[name]))];
}

function describeField(name: string, before: unknown, after: unknown): readonly string[] {
  if (render(before) === render(after)) return [];
  if (!isList(before) || !isList(after)) return [`    ${name}: ${render(before)} -> ${render(after)}`];
  const earlier = (before ?? []).map(render);
  const later = (after ?? []).map(render);
  const gone = earlier.filter((item) => !later.includes(item)).map((item) => `    ${name}: - ${item}`);
  const made = later.filter((item) => !earlier.includes(item)).map((item) => `    ${name}: + ${item}`);
  return gone.length + made.length === 0 ? [`    ${name}: another order`] : [...gone, ...made];
}

function isList(value: unknown): value is readonly unknown[] | null | undefined {
  return value === null || value === undefined || Array.isArray(value);
}

function render(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  return typeof value === 'string' ? value : JSON.stringify(value, (_, inner: unknown) => inner ?? undefined);
}
