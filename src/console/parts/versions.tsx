// The versions of a policy, with what each says in short, to take one into its editor; and what a draft changes.

import { changesOf } from '../logic/changes.ts';
import { moment } from '../logic/format.ts';
import { zone } from '../state/view.ts';
import { Badge } from './figures.tsx';
import { Card } from './page.tsx';
import { type Column, Table } from './table.tsx';

interface Version<Definition> {
  readonly version: number;
  readonly created_at: string;
  readonly definition: Definition;
}

interface VersionsProps<Definition> {
  readonly history: { readonly version: number; readonly versions: readonly Version<Definition>[] };
  /** What tells them apart, behind their number and time. */
  readonly columns: readonly Column<Version<Definition>>[];
  readonly note?: string;
  readonly onTake: (taken: Definition) => void;
}

export function Versions<Definition>({ history, columns, note, onTake }: VersionsProps<Definition>) {
  const present: readonly Column<Version<Definition>>[] = [
    {
      name: 'Version',
      raw: ({ version }) => version,
      show: ({ version }) => (
        <>
          {version} {version === history.version && <Badge tone="good">present</Badge>}
        </>
      ),
    },
    { name: 'Since', raw: ({ created_at: at }) => at, show: ({ created_at: at }) => moment(at, zone.value) },
  ];
  return (
    <Card title="Versions" {...(note === undefined ? {} : { note })}>
      <Table
        caption="Versions"
        columns={[...present, ...columns]}
        rows={history.versions}
        actions={({ definition }) => (
          <button type="button" class="small" onClick={() => onTake(definition)}>
            Take into the editor
          </button>
        )}
      />
    </Card>
  );
}

/** What is different, a line for each place. */
export function Changes({ before, after }: { readonly before: object; readonly after: object }) {
  return (
    <span class="changes mono">
      {changesOf(before, after).map((line, index) => (
        <span key={index}>{line}</span>
      ))}
    </span>
  );
}
