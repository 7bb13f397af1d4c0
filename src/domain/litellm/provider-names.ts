// Gives imported providers their ids: the same settings are the same provider.

import type { ProviderText } from '../configuration-text/entry-text.ts';

export class ProviderNames {
  readonly list: ProviderText[] = [];
  private readonly ids = new Map<string, string>();

  /** `name` is what a new id is made from. */
  idOf(name: string, fields: ProviderText['fields']): string {
    const settings = JSON.stringify(fields);
    const present = this.ids.get(settings);
    if (present !== undefined) return present;
    const slug =
      name
        .toLowerCase()
        .replaceAll(/[^a-z0-9_-]+/g, '-')
        .replace(/^[^a-z0-9]+/, '')
        .slice(0, 55) || 'provider';
    const taken = new Set(this.ids.values());
    let id = slug;
    for (let count = 2; taken.has(id); count += 1) id = `${slug}-${count}`;
    this.ids.set(settings, id);
    this.list.push({ id, fields });
    return id;
  }
}
