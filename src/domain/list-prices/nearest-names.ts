// Finds the names that look most like one that does not exist.

const NEAREST_MAX = 5;
/** Below this share of common pairs of letters two names have nothing to do with each other. */
const LIKENESS_MIN = 0.35;

export function nearestNames(name: string, names: readonly string[]): readonly string[] {
  const wanted = pairsOf(name);
  return names
    .map((candidate) => ({ candidate, likeness: likenessOf(wanted, pairsOf(candidate)) }))
    .filter(({ likeness }) => likeness >= LIKENESS_MIN)
    .toSorted((one, other) => other.likeness - one.likeness)
    .slice(0, NEAREST_MAX)
    .map(({ candidate }) => candidate);
}

/** Twice the pairs that both have, over the pairs of both: Dice's coefficient. */
function likenessOf(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const common = [...one].filter((pair) => other.has(pair)).length;
  return (2 * common) / Math.max(1, one.size + other.size);
}

function pairsOf(name: string): ReadonlySet<string> {
  const text = ` ${name.toLowerCase()} `;
  return new Set(Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)));
}
