// What is made of the catalog alone is made once for each of its changes, not for each request.

import type { Catalog } from '../../domain/models/catalog.ts';

/** `allowedModels`: what the caller may use; null for everything, which is the common case and the one that is kept. */
export function oncePerCatalog<T>(catalog: () => Catalog, make: (catalog: Catalog) => T): (allowedModels: ReadonlySet<string> | null) => T {
  let made: { readonly of: Catalog; readonly value: T } | null = null;
  return (allowedModels) => {
    const present = catalog();
    // A model that a caller may not use looks to it like one that does not exist.
    if (allowedModels !== null) return make({ ...present, models: present.models.filter(({ id }) => allowedModels.has(id)) });
    if (made?.of !== present) made = { of: present, value: make(present) };
    return made.value;
  };
}
