// Gives imported providers their ids. Entries with equal settings share one provider.

import type { ProviderText } from '../configuration-text/entry-text.ts';

export class ProviderNames {
  readonly list: ProviderText[] = [];
  private readonly bySettings = new Map<string, ProviderText>();
  private readonly ids = new Set<string>();

  /** The provider with these settings, or a new one that can be added, with an id made from `name`. */
  find(name: string, fields: ProviderText['fields']): ProviderText {
    const present = this.bySettings.get(JSON.stringify(fields));
    if (present !== undefined) return present;
    const slug =
      name
        .toLowerCase()
        .replaceAll(/[^a-z0-9_-]+/g, '-')
        .replace(/^[^a-z0-9]+/, '')
        .slice(0, 55) || 'provider';
    let id = slug;
    for (let count = 2; this.ids.has(id); count += 1) id = `${slug}-${count}`;
    return { id, fields };
  }

  add(provider: ProviderText): void {
    if (this.ids.has(provider.id)) return;
    this.ids.add(provider.id);
    this.bySettings.set(JSON.stringify(provider.fields), provider);
    this.list.push(provider);
  }
}
