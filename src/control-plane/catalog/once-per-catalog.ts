// What is made of the catalog alone is made once for each of its changes, not for each request.

import type { Catalog } from '../../domain/models/catalog.ts';

export function oncePerCatalog<T>(catalog: () => Catalog, make: (catalog: Catalog) => T): () => T {
  let made: { readonly of: Catalog; readonly value: T } | null = null;
  return () => {
    const present = catalog();
    if (made?.of !== present) made = { of: present, value: make(present) };
    return made.value;
  };
}
