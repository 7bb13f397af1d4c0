// The variables of the environment that secrets go into which stand in LiteLLM's file: each has its own.

export class KeyVariables {
  private readonly variables = new Map<string, string>();

  variableOf(usual: string, key: string): string {
    const known = `${usual}=${key}`;
    const present = this.variables.get(known);
    if (present !== undefined) return present;
    const others = [...this.variables.keys()].filter((other) => other.startsWith(`${usual}=`)).length;
    const variable = others === 0 ? usual : `${usual}_${others + 1}`;
    this.variables.set(known, variable);
    return variable;
  }
}

/** A name as the part of a variable's. */
export function variablePart(name: string): string {
  const part = name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');
  return /^[A-Z_]/.test(part) ? part : `P_${part}`;
}
