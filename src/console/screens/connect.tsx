// How a client is pointed at this gateway: agents, SDKs, curl, with a model of the catalog.

import { useState } from 'preact/hooks';
import { type AnswerOf, commandOf } from '../api.ts';
import { whole } from '../logic/format.ts';
import { snippetsFor } from '../logic/snippets.ts';
import { CodeBlock } from '../parts/copy.tsx';
import { SelectField } from '../parts/form.tsx';
import { Link } from '../parts/link.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Card, Page } from '../parts/page.tsx';
import { type Column, numberColumn, Table } from '../parts/table.tsx';
import { useRead } from '../state/load.ts';

type Model = AnswerOf<'/v1/models'>['data'][number];

const COLUMNS: readonly Column<Model>[] = [
  {
    name: 'Model',
    raw: ({ id }) => id,
    show: ({ id, display_name: name }) => (
      <>
        <code>{id}</code>
        <span class="note">{name}</span>
      </>
    ),
  },
  { name: 'Kind', raw: ({ kind }) => kind },
  numberColumn('Context', ({ context_length: size }) => size, whole, { isExtra: true }),
  {
    name: 'Input',
    raw: ({ pricing }) => pricing?.input ?? null,
    show: ({ pricing }) => pricing?.input ?? '–',
    isNumber: true,
  },
  {
    name: 'Output',
    raw: ({ pricing }) => pricing?.output ?? null,
    show: ({ pricing }) => pricing?.output ?? '–',
    isNumber: true,
  },
  {
    name: 'APIs',
    raw: ({ apis }) => apis.join(' '),
    show: ({ apis }) => apis.join(', ').replaceAll('_', ' '),
    isExtra: true,
  },
];

export function Connect() {
  const models = useRead('/v1/models');
  const [chosen, setChosen] = useState('');
  return (
    <Page
      title="Connect"
      lead={
        <>
          One address and one key for every client. The key is in the variable <code>TOLLGATE_KEY</code>;{' '}
          <Link to="keys">make one</Link> if you have none.
        </>
      }
      commands={[commandOf('/v1/models')]}
    >
      <Loaded
        load={models}
        permission="inference"
        isEmpty={({ data }) => data.length === 0}
        empty="The catalog has no model yet."
      >
        {({ data }) => {
          const texts = data.filter(({ kind }) => kind === 'text').map(({ id }) => id);
          const model = chosen || texts[0] || data[0]?.id || '';
          return (
            <>
              <div class="filters">
                <SelectField
                  label="Model"
                  value={model}
                  onValue={setChosen}
                  options={['service/auto', ...texts].filter(isFirst)}
                />
              </div>
              <div class="grid">
                {snippetsFor(location.origin, model).map(({ name, note, code }) => (
                  <Card key={name} title={name} note={note}>
                    <CodeBlock code={code} label={name} />
                  </Card>
                ))}
              </div>
              <Card title="Models" note="Prices are dollars for a million tokens.">
                <Table caption="Models" columns={COLUMNS} rows={data} />
              </Card>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function isFirst(value: string, index: number, all: readonly string[]): boolean {
  return all.indexOf(value) === index;
}
