// Gives imported providers their ids: the same settings are the same provider.

import type { ProviderText } from '../configuration-text/entry-text.ts';

export class ProviderNames {
  readonly list: ProviderText[] = [];
  private readonly bySettings = new Map<string, ProviderText>();
  private readonly ids = new Set<string>();

  /** The one that has these settings, or one that can be added; `name` is what its id is made from. */
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
