// The virtual model that stands for "choose one for me" (spec 2.3, 4.11).

export interface VirtualModel {
  /** The model name that clients send. */
  readonly id: string;
  readonly displayName: string;
  /** Shown as the owner where listings name a model's provider. */
  readonly owner: string;
}

/** `brand` is the setting BRAND, `Service` by default. */
export function virtualModelOf(brand: string): VirtualModel {
  const owner = brand.toLowerCase();
  return { id: `${owner}/auto`, displayName: `${brand} Auto`, owner };
}
