// Pairs a provider's names of models and keys with ours: as the user says, else models by similar names, and keys,
// whose names have nothing in common, by similar use.

const DATED = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/;

export interface Paired {
  /** Our name for each of their names. A name that is missing here is unknown to us. */
  readonly ours: ReadonlyMap<string, string>;
  /** What was guessed, in whole sentences. */
  readonly notes: readonly string[];
}

/** A snapshot (`gpt-4o-2024-08-06`) is paired with the name that is called here (`gpt-4o`), and the other way round. */
export function pairModels(
  theirs: readonly string[],
  ours: readonly string[],
  told: ReadonlyMap<string, string>,
): Paired {
  const paired = new Map<string, string>();
  const notes: string[] = [];
  for (const name of new Set(theirs)) {
    const exact = told.get(name) ?? (ours.includes(name) ? name : undefined);
    const alike = ours.filter((own) => own.replace(DATED, '') === name.replace(DATED, ''));
    const [guessed] = alike;
    const found = exact ?? (alike.length === 1 ? guessed : undefined);
    if (found === undefined) continue;
    paired.set(name, found);
    if (exact === undefined)
      notes.push(`Their model ${name} is taken for ${found}; --model ${name}=OURS says otherwise.`);
  }
  return { ours: paired, notes };
}

/** An amount, such as tokens, for each combination of what both sides tell apart, such as day and model. */
export type UseByCell = ReadonlyMap<string, number>;

/** How much two uses have in common: 1 if they are equal, 0 if they have nothing in common. */
export function similarity(one: UseByCell, other: UseByCell): number {
  let common = 0;
  let all = 0;
  for (const cell of new Set([...one.keys(), ...other.keys()])) {
    const [a, b] = [one.get(cell) ?? 0, other.get(cell) ?? 0];
    common += Math.min(a, b);
    all += Math.max(a, b);
  }
  return all === 0 ? 0 : common / all;
}

/** Two uses with at least this similarity count as the use of one key. */
export const SAME_FROM = 0.5;

/** Keys that the user has not paired are paired by use, the most similar first. */
export function pairKeys(
  theirs: ReadonlyMap<string, UseByCell>,
  ours: ReadonlyMap<string, UseByCell>,
  told: ReadonlyMap<string, string>,
): Paired {
  const paired = new Map([...told].filter(([key]) => theirs.has(key)));
  const taken = new Set(paired.values());
  const candidates = [...theirs]
    .filter(([key]) => !paired.has(key))
    .flatMap(([key, use]) =>
      [...ours].filter(([own]) => !taken.has(own)).map(([own, used]) => ({ key, own, same: similarity(use, used) })),
    )
    .filter(({ same }) => same >= SAME_FROM)
    .sort((one, other) => other.same - one.same);
  const notes: string[] = [];
  for (const { key, own, same } of candidates) {
    if (paired.has(key) || taken.has(own)) continue;
    paired.set(key, own);
    taken.add(own);
    notes.push(
      `Their key ${key} is taken for ${own}: ${Math.floor(same * 100)} % of what both used is the same; ` +
        `--key ${key}=OURS says otherwise.`,
    );
  }
  return { ours: paired, notes };
}
