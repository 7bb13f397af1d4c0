// Caches what is rendered from the catalog alone, so that it is rendered once for each change and not for each request.

import type { Catalog } from '../../domain/models/catalog.ts';

/**
 * `allowedModels`: the models that the principal may use; null: every model. Only that common case is kept. `policy`:
 * the routing policy of the principal's organization; null: auto routing is off.
 */
export function oncePerCatalog<T>(
  catalog: () => Catalog,
  make: (catalog: Catalog, policy: string | null) => T,
): (allowedModels: ReadonlySet<string> | null, policy?: string | null) => T {
  let of: Catalog | null = null;
  const made = new Map<string | null, T>();
  return (allowedModels, policy = null) => {
    const present = catalog();
    // A model that the principal may not use looks like one that does not exist.
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
