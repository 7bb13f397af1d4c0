// The variables of the environment that secrets go into which stand in LiteLLM's file: each has its own.

export class KeyVariables {
  private readonly variables = new Map<string, string>();
  private readonly taken: Set<string>;
  private readonly implied = new Set<string>();

  /** `named`: the variables that the file names itself, which have other keys. */
  constructor(named: Iterable<string>) {
    this.taken = new Set(named);
  }

  /** Of an entry without a key: what the environment has already. */
  usualOf(usual: string): string {
    this.implied.add(usual);
    return usual;
  }

  /** Those of entries without a key that have been given to another key. */
  conflicts(): readonly string[] {
    const given = new Set(this.variables.values());
    return [...this.implied].filter((name) => given.has(name));
  }

  variableOf(usual: string, key: string): string {
    const known = `${usual}=${key}`;
    const present = this.variables.get(known);
    if (present !== undefined) return present;
    let variable = usual;
    for (let count = 2; this.taken.has(variable); count += 1) variable = `${usual}_${count}`;
    this.taken.add(variable);
    this.variables.set(known, variable);
    return variable;
  }
}

/** A name as the part of a variable's. */
export function variablePart(name: string): string {
  const part = name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');
  return /^[A-Z_]/.test(part) ? part : `P_${part}`;
}
