// Chooses an environment variable for each secret that LiteLLM's file contains in clear.

export class KeyVariables {
  private readonly variables = new Map<string, string>();
  private readonly taken: Set<string>;
  private readonly implied = new Set<string>();

  /** `named`: the variables that the file itself names; they have other contents. */
  constructor(named: Iterable<string>) {
    this.taken = new Set(named);
  }

  /** The variable of an entry without a key: the usual one, which the environment should have already. */
  usualOf(usual: string): string {
    this.implied.add(usual);
    return usual;
  }

  /** Variables of entries without a key that were also given to another entry's key. */
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

/** A name in the form of a part of a variable's name. */
export function variablePart(name: string): string {
  const part = name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');
  return /^[A-Z_]/.test(part) ? part : `P_${part}`;
}
