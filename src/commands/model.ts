// `tollgate model`: lists the models of the catalog, or removes one.

import { catalogCommand } from './command/catalog-command.ts';

export const modelCommand = catalogCommand('model', ({ fields }) => [
  String(fields['kind']),
  fields['active'] === true ? 'active' : 'inactive',
  (fields['served_by'] as readonly { readonly provider: string; readonly model: string }[] | undefined)
    ?.map(({ provider, model }) => `${provider} (${model})`)
    .join(', ') ?? '',
]);
