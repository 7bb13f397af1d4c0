// `tollgate provider`: lists the providers of the catalog, or removes one.

import { catalogCommand } from './command/catalog-command.ts';

export const providerCommand = catalogCommand('provider', ({ fields }) => [
  String(fields['base_url']),
  fields['auth'] === 'none' ? 'no key' : String(fields['auth']),
]);
