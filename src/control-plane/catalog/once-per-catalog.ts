// What is made of the catalog alone is made once for each of its changes, not for each request.

import type { Catalog } from '../../domain/models/catalog.ts';

/**
 * `allowedModels`: what the caller may use; null for everything, which is the common case and the one that is kept.
 * `policy`: the routing policy that the caller's requests are routed by; null where auto routing is off.
 */
export function oncePerCatalog<T>(
  catalog: () => Catalog,
  make: (catalog: Catalog, policy: string | null) => T,
): (allowedModels: ReadonlySet<string> | null, policy?: string | null) => T {
  let of: Catalog | null = null;
  const made = new Map<string | null, T>();
  return (allowedModels, policy = null) => {
    const present = catalog();
    // A model that a caller may not use looks to it like one that does not exist.
    if (allowedModels !== null)
      return make({ ...present, models: present.models.filter(({ id }) => allowedModels.has(id)) }, policy);
    if (of !== present) made.clear();
    of = present;
    const known = made.get(policy);
    if (known !== undefined) return known;
    const value = make(present, policy);
    made.set(policy, value);
    return value;
  };
}
