// The virtual model that stands for "choose one for me" (spec 2.3, 4.11).

export interface VirtualModel {
  /** What clients name. */
  readonly id: string;
  readonly displayName: string;
  /** Whose it is, where a model of a provider would name that one. */
  readonly owner: string;
}

/** `brand` is the setting of that name, `Service` where it was not set. */
export function virtualModelOf(brand: string): VirtualModel {
  const owner = brand.toLowerCase();
  return { id: `${owner}/auto`, displayName: `${brand} Auto`, owner };
}
